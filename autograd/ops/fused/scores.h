// Chapter 8. Kernels of attention on transposed scores: a row for each key, a lane for each query.
//
// Softmax and its derivative (core/kernels/rows.h) work along the keys. Here keys lie below one another, so that every
// instruction works on 16 queries at once and no sum runs across a register. Used by
// autograd/ops/fused/packed_attention.cpp and tiled_attention.cpp, which say what S, P, W and m are.
// Serves: autograd/ops/fused/tiled_attention.h
#pragma once

#include <array>

#include "core/kernels/elementwise.h"
#include "core/machine/math.h"
#include "core/mask.h"

namespace orrery::kernels {

/// Queries that go by together.
inline constexpr i64 query_tile = 128;
/// Rows of transposed matrices are padded to half a vector of 16 floats, so that 17 queries do not cost as much as 32.
inline constexpr i64 lane_multiple = 8;
static constexpr i64 padded(i64 n) { return (n + lane_multiple - 1) / lane_multiple * lane_multiple; }
/// What belongs to each query of a tile: one number a lane.
template <class T>
using Lanes = std::array<T, query_tile>;

/// The part of S^T, P^T or dS^T that belongs to a tile: `keys` rows of `width` lanes, `stride` numbers apart.
template <class T>
struct Scores {
  T* data;
  i64 keys, width, stride;
  T* row(i64 j) const { return data + j * stride; }
};

/// What the queries of a tile may see, tables apart: query i sees keys [first[i], limit[i]). Lanes beyond the queries
/// are padding and see nothing.
struct SeenKeys {
  Lanes<i32> first, limit;
  KeyRange some;  ///< no query sees any other key
  KeyRange all;   ///< every query sees these; may be empty

  /// Queries [begin, end) of n with m keys, in batch row b.
  static SeenKeys of(const Mask& mask, i64 b, i64 begin, i64 end, i64 n, i64 m) {
    SeenKeys seen;
    seen.first.fill(0), seen.limit.fill(0);
    seen.some = {m, 0}, seen.all = {0, m};
    for (i64 i = begin; i < end; ++i) {
      const KeyRange keys = mask.range(b, i, n, m);
      const size_t lane = static_cast<size_t>(i - begin);
      seen.first[lane] = static_cast<i32>(keys.first), seen.limit[lane] = static_cast<i32>(keys.limit);
      seen.all = {std::max(seen.all.first, keys.first), std::min(seen.all.limit, keys.limit)};
      if (keys.count() > 0) seen.some = {std::min(seen.some.first, keys.first), std::max(seen.some.limit, keys.limit)};
    }
    if (seen.some.count() < 0) seen.some = {};
    return seen;
  }
};

/// Keys whose terms are added before their sum is. Frozen (core/products/blas.h).
inline constexpr i64 keys_at_once = 64;

/// sum[i] over all keys j of term(j, i), in two steps, so that a long sum keeps its digits.
template <class T, class Term>
static void sum_over_keys(i64 keys, i64 width, Lanes<T>& sum, const Term& term) {
  Lanes<T> part;
  std::fill_n(sum.data(), width, T{0});
  for (i64 begin = 0; begin < keys; begin += keys_at_once) {
    std::fill_n(part.data(), width, T{0});
    for (i64 j = begin; j < std::min(keys, begin + keys_at_once); ++j) term(j, part.data());
    add_to(width, part.data(), sum.data());
  }
}

/// One key: scores of queries whose keys begin after it become -infinity.
template <class T>
static void hide_before(i64 n, i32 key, const i32* first, T* x) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) x[i] = key < first[i] ? -std::numeric_limits<T>::infinity() : x[i];
}

/// One key: scores of queries whose keys end before it become -infinity; `largest` follows those that are left.
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

/// The same for all keys of S, from `first` on.
template <class T>
static void hide_and_find_largest(const Scores<T>& S, i64 first, const SeenKeys& seen, T* largest) {
  for (i64 j = 0; j < S.keys; ++j) {
    const i32 key = static_cast<i32>(first + j);
    if (key < seen.all.first) hide_before(S.width, key, seen.first.data(), S.row(j));
    hide_and_find_largest(S.width, key, seen.limit.data(), S.row(j), largest);
  }
}

/// S^T to P^T in place, for keys from `first` on: the softmax of core/kernels/rows.h, down the columns.
template <class T>
static void softmax_columns(const Scores<T>& S, i64 first, const SeenKeys& seen) {
  Lanes<T> shift, sum;
  shift.fill(-std::numeric_limits<T>::infinity());
  hide_and_find_largest(S, first, seen, shift.data());
  for (T& s : shift) s = s == -std::numeric_limits<T>::infinity() ? T{0} : s;
  sum_over_keys(S.keys, S.width, sum, [&](i64 j, T* part) { exp_and_add(S.width, shift.data(), S.row(j), part); });
  for (T& s : sum) s = s == T{0} ? T{0} : T{1} / s;
  for (i64 j = 0; j < S.keys; ++j) multiply(S.width, sum.data(), S.row(j));
}

/// One key: dS from dW, which it replaces. Where P is 0, dS is 0 whatever dW is.
template <class T>
static void score_gradient(i64 n, T kept, T factor, const T* signed_P, const T* inner, T* dS) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T P = signed_P[i] < T{0} ? -signed_P[i] : signed_P[i];
    const T dP = signed_P[i] > T{0} ? dS[i] * kept : T{0};
    dS[i] = P == T{0} ? T{0} : P * (dP - inner[i]) * factor;
  }
}

/// One key: W from P with its signs; W dW is added to `inner`.
template <class T>
static void restore_weights(i64 n, T kept, const T* signed_P, const T* dW, T* W, T* inner) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    W[i] = signed_P[i] > T{0} ? signed_P[i] * kept : T{0};
    inner[i] += W[i] == T{0} ? T{0} : W[i] * dW[i];
  }
}

namespace {  // a copy for each file that uses it: core/kernels/README.md

/// Softmax over keys that go by in tiles, for each query: the largest score so far, and the sum of e^{S - largest}.
template <class T>
struct RunningSoftmax {
  Lanes<T> largest, sum;
  RunningSoftmax() {
    largest.fill(-std::numeric_limits<T>::infinity());
    sum.fill(T{0});
  }

  /// The next tile, keys from `first` on: S^T becomes e^{S - largest}. What was computed with the largest score before
  /// has to be multiplied by `rescale`.
  void add(const Scores<T>& S, i64 first, const SeenKeys& seen, Lanes<T>& rescale) {
    Lanes<T> shift, part;
    std::copy_n(largest.data(), S.width, rescale.data());
    hide_and_find_largest(S, first, seen, largest.data());
    shift_and_rescale(S.width, shift.data(), rescale.data());
    sum_over_keys(S.keys, S.width, part, [&](i64 j, T* p) { exp_and_add(S.width, shift.data(), S.row(j), p); });
    for (i64 i = 0; i < S.width; ++i) sum[i] = sum[i] * rescale[i] + part[i];
  }

 private:
  // Queries that have seen nothing yet are shifted by 0, since -infinity - (-infinity) is no number.
  void shift_and_rescale(i64 n, T* shift, T* rescale) const {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
      shift[i] = largest[i] == -std::numeric_limits<T>::infinity() ? T{0} : largest[i];
      rescale[i] = math::exp(rescale[i] - shift[i]);
    }
  }
};

}  // namespace

/// One key: scores of queries that may not see it become -infinity.
template <class T>
static void hide(i64 n, i32 key, const SeenKeys& seen, T* S) {
  if (key < seen.all.first) hide_before(n, key, seen.first.data(), S);
  if (key < seen.all.limit) return;
  const i32* limit = seen.limit.data();
#pragma omp simd
  for (i64 i = 0; i < n; ++i) S[i] = key < limit[i] ? S[i] : -std::numeric_limits<T>::infinity();
}

/// One key, computed again, with P = e^{S - largest} / sum, `inverse` being 1 / sum, and D = <dO, O>: W = P m from S,
/// which it replaces, and dS from dW, which it replaces. Where P is 0, dS is 0 whatever dW is. Two loops, and nothing
/// else under a condition: that is twice as fast.
template <class T>
static void recompute_weights(i64 n, const T* largest, const T* inverse, const T* D, const T* m, T factor, T* S,
                              T* dS) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) S[i] = math::exp(S[i] - largest[i]) * inverse[i];
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T P = S[i], gradient = P * (dS[i] * m[i] - D[i]) * factor;
    S[i] = P * m[i];
    dS[i] = P == T{0} ? T{0} : gradient;
  }
}

}  // namespace orrery::kernels
