// Chapter 8. Attention on transposed scores: one row per key, one column per query.
//
// Softmax and its derivative (autograd/ops/softmax_rows.h) add up over the keys. Here the scores of one query stand
// below one another, so each instruction works on the scores of several queries (16 in f32 with AVX-512) with one key,
// and no sum runs across a register. Used by packed_attention.cpp and tiled_attention.cpp, which explain S, P, W and m.
#pragma once

#include <array>

#include "core/kernels/elementwise.h"
#include "core/machine/math.h"
#include "core/mask.h"

namespace orrery::kernels {

/// The queries of a tile, which are computed together.
inline constexpr i64 query_tile = 128;
/// Rows of transposed matrices are padded to a multiple of this: half a vector of 16 floats, so that 17 queries do not
/// cost as much as 32.
inline constexpr i64 width_multiple = 8;
static constexpr i64 padded(i64 n) { return (n + width_multiple - 1) / width_multiple * width_multiple; }
/// One number for each query column of a tile.
template <class T> using PerQuery = std::array<T, query_tile>;

/// The part of S^T, P^T or scaled_dS^T that belongs to a tile: `keys` rows of `width` query columns, `stride` numbers
/// apart. scaled_dS is dS / sqrt(d_k).
template <class T> struct Scores {
  T* data;
  i64 keys, width, stride;
  T* row(i64 j) const { return data + j * stride; }
  Scores rows(i64 begin, i64 count) const { return {row(begin), count, width, stride}; }
};

/// The number of keys whose terms are added up before their sum is added to the total. Frozen (core/products/gemm.h).
inline constexpr i64 keys_at_once = 64;

namespace {  // a copy for each file that uses it: core/kernels/README.md

/// What the queries of a tile may see of at most 512 keys, in blocks of 64. Blocks of which they see nothing are
/// skipped; those of which they see all need no check.
class SeenKeys {
 public:
  static constexpr i64 most_keys = 512;

  /// Of `given`, the keys that are in the range of some query of q, at most 128.
  SeenKeys(const Mask& mask, const QuerySpan& q, KeyRange given) {
    const KeyRange range = mask.range(q);
    keys_ = {std::max(given.first, range.first), std::min(given.limit, range.limit)};
    if (keys_.count() <= 0) keys_ = {};
    for (i64 i = 0; i < blocks(); ++i) {
      const auto at = static_cast<size_t>(i);
      seen_[at] = mask.see(q, block(i), bits_[at]);
    }
  }

  /// No query sees another key; some of these may be hidden from all.
  KeyRange keys() const { return keys_; }

  /// Calls body(keys) for each run of keys, as long as possible, whose blocks are all seen by some query.
  template <class Body> void for_runs(const Body& body) const {
    for (i64 i = 0; i < blocks(); ++i) {
      if (!is_seen(i)) continue;
      const i64 first = i;
      while (i < blocks() && is_seen(i)) ++i;
      body(KeyRange{block(first).first, block(i - 1).limit});
    }
  }
  /// For each block of a run: body(keys, bits), where `bits` is null if all queries see all keys.
  template <class Body> void for_blocks(KeyRange run, const Body& body) const {
    for (i64 i = (run.first - keys_.first) / keys_at_once; i < blocks() && block(i).limit <= run.limit; ++i) {
      const auto at = static_cast<size_t>(i);
      body(block(i), seen_[at] == Seen::all ? nullptr : &bits_[at]);
    }
  }

 private:
  i64 blocks() const { return (keys_.count() + keys_at_once - 1) / keys_at_once; }
  KeyRange block(i64 i) const {
    const i64 first = keys_.first + i * keys_at_once;
    return {first, std::min(keys_.limit, first + keys_at_once)};
  }
  bool is_seen(i64 i) const { return seen_[static_cast<size_t>(i)] != Seen::nothing; }

  static constexpr size_t most_blocks = most_keys / keys_at_once;
  KeyRange keys_;
  std::array<Seen, most_blocks> seen_;
  std::array<MaskBlock, most_blocks> bits_;  // where some are seen
};
static_assert(MaskBlock::most_keys == keys_at_once && MaskBlock::most_queries == query_tile);

}  // namespace

/// Adds to sum[i] what term(j, part) adds to part[i] for all keys j, in two steps, which lose fewer digits than one
/// long sum.
template <class T, class Term> static void sum_over_keys(i64 keys, i64 width, PerQuery<T>& sum, const Term& term) {
  PerQuery<T> part;
  for (i64 begin = 0; begin < keys; begin += keys_at_once) {
    std::fill_n(part.data(), width, T{0});
    for (i64 j = begin; j < std::min(keys, begin + keys_at_once); ++j) term(j, part.data());
    add_to(width, part.data(), sum.data());
  }
}

/// For one key, number `key` of a block: the scores of queries that may not see it become -infinity.
template <class T> static void hide(i64 n, const MaskBlock& block, i64 key, T* x) {
  for (i64 i = 0; i < n; i += width_multiple) {
    const auto word = static_cast<size_t>(i / MaskBlock::queries_of_word);
    const u32 bits = block.words[word][static_cast<size_t>(key)] >> (i % MaskBlock::queries_of_word);
#pragma omp simd
    for (i64 k = 0; k < width_multiple; ++k)
      x[i + k] = (bits & (u32{1} << k)) != 0 ? x[i + k] : -std::numeric_limits<T>::infinity();
  }
}

/// For one key: `largest` becomes the maximum of itself and the scores.
template <class T> static void find_largest(i64 n, const T* x, T* largest) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) largest[i] = x[i] > largest[i] ? x[i] : largest[i];
}

template <class T> static void multiply(i64 n, const T* factor, T* x) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) x[i] *= factor[i];
}

template <class T> static void exp_and_add(i64 n, const T* shift, T* x, T* sum) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    x[i] = math::exp(x[i] - shift[i]);
    sum[i] += x[i];
  }
}

/// `hide` and `find_largest` for the keys of a run, which are those of S.
template <class T>
static void hide_and_find_largest(const Scores<T>& S, KeyRange run, const SeenKeys& seen, T* largest) {
  seen.for_blocks(run, [&](KeyRange keys, const MaskBlock* bits) {
    for (i64 j = 0; j < keys.count(); ++j) {
      T* row = S.row(keys.first - run.first + j);
      if (bits) hide(S.width, *bits, j, row);
      find_largest(S.width, row, largest);
    }
  });
}

/// For each query, the number that is subtracted from its scores before e^x: the largest score, but 0 if it has seen no
/// key, since -infinity - (-infinity) is NaN.
template <class T> static T shift_of(T largest) {
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}

/// Turns S^T into P^T in place: the softmax of autograd/ops/softmax_rows.h, column by column. Row 0 belongs to the
/// first of the keys in `seen`; rows outside its runs are neither read nor written.
template <class T> static void softmax_columns(const Scores<T>& S, const SeenKeys& seen) {
  PerQuery<T> shift, sum;
  shift.fill(-std::numeric_limits<T>::infinity());
  sum.fill(T{0});
  const auto rows = [&](KeyRange run) { return S.rows(run.first - seen.keys().first, run.count()); };
  seen.for_runs([&](KeyRange run) { hide_and_find_largest(rows(run), run, seen, shift.data()); });
  for (T& s : shift) s = shift_of(s);
  seen.for_runs([&](KeyRange run) {
    const Scores<T> of_run = rows(run);
    sum_over_keys(run.count(), S.width, sum,
                  [&](i64 j, T* part) { exp_and_add(S.width, shift.data(), of_run.row(j), part); });
  });
  for (i64 i = 0; i < S.width; ++i) sum[i] = sum[i] == T{0} ? T{0} : T{1} / sum[i];
  seen.for_runs([&](KeyRange run) {
    const Scores<T> of_run = rows(run);
    for (i64 j = 0; j < run.count(); ++j) multiply(S.width, sum.data(), of_run.row(j));
  });
}

/// For one key: replaces dW by scaled_dS = P (m dW - inner) factor, where `inner` is the sum of P dP over all keys and
/// `factor` is 1 / sqrt(d_k). Where P is 0, so is scaled_dS, whatever dW is. signed_P is P, negative where dropout
/// drops; m is 0 there, and `keep_factor` elsewhere.
template <class T>
static void score_gradient(i64 n, T keep_factor, T factor, const T* signed_P, const T* inner, T* scaled_dS) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T P = signed_P[i] < T{0} ? -signed_P[i] : signed_P[i], dW = scaled_dS[i];
    const T dP = signed_P[i] > T{0} ? dW * keep_factor : T{0};
    scaled_dS[i] = P == T{0} ? T{0} : P * (dP - inner[i]) * factor;
  }
}

/// For one key: computes W = m P from P with its signs, and adds W dW to `inner`. m as in `score_gradient`.
template <class T> static void restore_weights(i64 n, T keep_factor, const T* signed_P, const T* dW, T* W, T* inner) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    W[i] = signed_P[i] > T{0} ? signed_P[i] * keep_factor : T{0};
    inner[i] += W[i] == T{0} ? T{0} : W[i] * dW[i];
  }
}

namespace {  // a copy for each file that uses it: core/kernels/README.md

/// Softmax over keys that are processed in tiles; for each query, the largest score so far and the sum of
/// e^{S - largest}.
template <class T> struct RunningSoftmax {
  PerQuery<T> largest, sum;
  RunningSoftmax() {
    largest.fill(-std::numeric_limits<T>::infinity());
    sum.fill(T{0});
  }

  /// The next run of keys: S^T becomes e^{S - largest}. `rescale` becomes
  /// e^{previous largest - largest}, by which what was computed with the previous `largest` must be multiplied.
  void add(const Scores<T>& S, KeyRange run, const SeenKeys& seen, PerQuery<T>& rescale) {
    PerQuery<T> shift, part;
    part.fill(T{0});
    std::copy_n(largest.data(), S.width, rescale.data());
    hide_and_find_largest(S, run, seen, largest.data());
    shift_and_rescale(S.width, shift.data(), rescale.data());
    sum_over_keys(S.keys, S.width, part, [&](i64 j, T* p) { exp_and_add(S.width, shift.data(), S.row(j), p); });
    for (i64 i = 0; i < S.width; ++i) sum[i] = sum[i] * rescale[i] + part[i];
  }

 private:
  // `rescale` comes in as the previous `largest`.
  void shift_and_rescale(i64 n, T* shift, T* rescale) const {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
      shift[i] = shift_of(largest[i]);
      rescale[i] = math::exp(rescale[i] - shift[i]);
    }
  }
};

}  // namespace

/// For one key: computes P = e^{S - largest} / sum again, where `inverse` is 1 / sum. Replaces S by W = P m, and dW by
/// scaled_dS, where D = <dO, O>. Where P is 0, so is scaled_dS, whatever dW is. Two loops, of which only the second
/// selects, and only once, so that the compiler vectorises both.
template <class T>
static void recompute_weights(i64 n, const T* largest, const T* inverse, const T* D, const T* m, T factor, T* S,
                              T* scaled_dS) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) S[i] = math::exp(S[i] - largest[i]) * inverse[i];
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T P = S[i], dW = scaled_dS[i], gradient = P * (dW * m[i] - D[i]) * factor;
    S[i] = P * m[i];
    scaled_dS[i] = P == T{0} ? T{0} : gradient;
  }
}

}  // namespace orrery::kernels
