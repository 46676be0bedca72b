// Chapter 8. Attention on transposed scores: one row per key, one column per query.
//
// Softmax and its derivative (autograd/ops/softmax_rows.h) add up over the keys. Here the scores of one query stand
// below one another, so each instruction works on the scores of several queries (16 in f32 with AVX-512) with one key,
// and no sum runs across a register. Used by packed_attention.cpp and tiled_attention.cpp, which explain S, P, W and m.
// Serves: autograd/ops/fused/tiled_attention.h
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
template <class T>
using PerQuery = std::array<T, query_tile>;

/// The part of S^T, P^T or scaled_dS^T that belongs to a tile: `keys` rows of `width` query columns, `stride` numbers
/// apart. scaled_dS is dS / sqrt(d_k).
template <class T>
struct Scores {
  T* data;
  i64 keys, width, stride;
  T* row(i64 j) const { return data + j * stride; }
};

/// What the queries of a tile may see, without tables: query i sees keys [first[i], limit[i]). Query columns beyond the
/// last query are padding and see nothing.
struct SeenKeys {
  PerQuery<i32> first, limit;
  KeyRange any_query;    ///< all keys that some query sees are in this range
  KeyRange every_query;  ///< keys that every query sees; may be empty

  /// Queries [begin, end) of n with m keys, in batch row b.
  static SeenKeys of(const Mask& mask, i64 b, i64 begin, i64 end, i64 n, i64 m) {
    SeenKeys seen;
    seen.first.fill(0);
    seen.limit.fill(0);
    seen.any_query = {m, 0};
    seen.every_query = {0, m};
    for (i64 i = begin; i < end; ++i) {
      const KeyRange keys = mask.range(b, i, n, m);
      const size_t column = static_cast<size_t>(i - begin);
      seen.first[column] = static_cast<i32>(keys.first);
      seen.limit[column] = static_cast<i32>(keys.limit);
      seen.every_query = {std::max(seen.every_query.first, keys.first), std::min(seen.every_query.limit, keys.limit)};
      if (keys.count() > 0)
        seen.any_query = {std::min(seen.any_query.first, keys.first), std::max(seen.any_query.limit, keys.limit)};
    }
    if (seen.any_query.count() < 0) seen.any_query = {};
    return seen;
  }
};

/// The number of keys whose terms are added up before their sum is added to the total. Frozen (core/products/blas.h).
inline constexpr i64 keys_at_once = 64;

/// sum[i] = the sum over all keys j of what term(j, part) adds to part[i], in two steps, which lose fewer digits than
/// one long sum.
template <class T, class Term>
static void sum_over_keys(i64 keys, i64 width, PerQuery<T>& sum, const Term& term) {
  PerQuery<T> part;
  std::fill_n(sum.data(), width, T{0});
  for (i64 begin = 0; begin < keys; begin += keys_at_once) {
    std::fill_n(part.data(), width, T{0});
    for (i64 j = begin; j < std::min(keys, begin + keys_at_once); ++j) term(j, part.data());
    add_to(width, part.data(), sum.data());
  }
}

/// For one key: the scores of queries whose range begins after it become -infinity.
template <class T>
static void hide_before(i64 n, i32 key, const i32* first, T* x) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) x[i] = key < first[i] ? -std::numeric_limits<T>::infinity() : x[i];
}

/// For one key: the scores of queries whose range ends before it become -infinity; `largest` becomes the maximum of
/// itself and the other scores.
template <class T>
static void hide_and_find_largest(i64 n, i32 key, const i32* limit, T* x, T* largest) {
  constexpr T never = -std::numeric_limits<T>::infinity();
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    x[i] = key < limit[i] ? x[i] : never;
    largest[i] = x[i] > largest[i] ? x[i] : largest[i];
  }
}

template <class T>
static void multiply(i64 n, const T* factor, T* x) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) x[i] *= factor[i];
}

template <class T>
static void exp_and_add(i64 n, const T* shift, T* x, T* sum) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    x[i] = math::exp(x[i] - shift[i]);
    sum[i] += x[i];
  }
}

/// `hide_before` and `hide_and_find_largest` for all keys of S, which begin with key `first`.
template <class T>
static void hide_and_find_largest(const Scores<T>& S, i64 first, const SeenKeys& seen, T* largest) {
  for (i64 j = 0; j < S.keys; ++j) {
    const i32 key = static_cast<i32>(first + j);
    if (key < seen.every_query.first) hide_before(S.width, key, seen.first.data(), S.row(j));
    hide_and_find_largest(S.width, key, seen.limit.data(), S.row(j), largest);
  }
}

/// For each query, the number that is subtracted from its scores before e^x: the largest score, but 0 if it has seen no
/// key, since -infinity - (-infinity) is NaN.
template <class T>
static T shift_of(T largest) {
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}

/// Turns S^T into P^T in place: the softmax of autograd/ops/softmax_rows.h, column by column. Row 0 belongs to key
/// `first`.
template <class T>
static void softmax_columns(const Scores<T>& S, i64 first, const SeenKeys& seen) {
  PerQuery<T> shift, sum;
  shift.fill(-std::numeric_limits<T>::infinity());
  hide_and_find_largest(S, first, seen, shift.data());
  for (T& s : shift) s = shift_of(s);
  sum_over_keys(S.keys, S.width, sum, [&](i64 j, T* part) { exp_and_add(S.width, shift.data(), S.row(j), part); });
  for (i64 i = 0; i < S.width; ++i) sum[i] = sum[i] == T{0} ? T{0} : T{1} / sum[i];
  for (i64 j = 0; j < S.keys; ++j) multiply(S.width, sum.data(), S.row(j));
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
template <class T>
static void restore_weights(i64 n, T keep_factor, const T* signed_P, const T* dW, T* W, T* inner) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    W[i] = signed_P[i] > T{0} ? signed_P[i] * keep_factor : T{0};
    inner[i] += W[i] == T{0} ? T{0} : W[i] * dW[i];
  }
}

namespace {  // a copy for each file that uses it: core/kernels/README.md

/// Softmax over keys that are processed in tiles; for each query, the largest score so far and the sum of
/// e^{S - largest}.
template <class T>
struct RunningSoftmax {
  PerQuery<T> largest, sum;
  RunningSoftmax() {
    largest.fill(-std::numeric_limits<T>::infinity());
    sum.fill(T{0});
  }

  /// The next tile, which begins with key `first`: S^T becomes e^{S - largest}. `rescale` becomes
  /// e^{previous largest - largest}, by which what was computed with the previous `largest` must be multiplied.
  void add(const Scores<T>& S, i64 first, const SeenKeys& seen, PerQuery<T>& rescale) {
    PerQuery<T> shift, part;
    std::copy_n(largest.data(), S.width, rescale.data());
    hide_and_find_largest(S, first, seen, largest.data());
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

/// For one key: the scores of queries that may not see it become -infinity.
template <class T>
static void hide(i64 n, i32 key, const SeenKeys& seen, T* S) {
  if (key < seen.every_query.first) hide_before(n, key, seen.first.data(), S);
  if (key < seen.every_query.limit) return;
  const i32* limit = seen.limit.data();
#pragma omp simd
  for (i64 i = 0; i < n; ++i) S[i] = key < limit[i] ? S[i] : -std::numeric_limits<T>::infinity();
}

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
