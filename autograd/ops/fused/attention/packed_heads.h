// Chapter 8. What both forms of attention on packed products share: where each head's matrices are stored, and which
// keys are hidden.
//
// The Q, K and V of a head are columns of the packed products:
//   qkv [B, n, h (2 d_k + d_v)]: all Q, all K, all V
//   or  q [B, n, h d_k]  and  kv [B, m, h (d_k + d_v)]: all K, all V
// and its O is columns of [B, n, h d_v]. Queries are processed in tiles, with transposed scores: one column per query
// (autograd/ops/fused/attention/scores.h).
#pragma once

#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops/fused/attention/packed_attention.h"
#include "autograd/ops/fused/attention/scores.h"
#include "autograd/ops/row_dropout.h"
#include "core/kernels/scratch.h"
#include "core/mask.h"
#include "core/products/gemm.h"
#include "core/products/transpose.h"
#include "core/tensor_ops.h"

namespace orrery::packed_heads {
using namespace kernels;

/// More keys than this are processed in tiles. Up to this number, the saved weights are small, and reading them is
/// cheaper than computing them again. Frozen (core/products/gemm.h).
inline constexpr i64 most_keys = SeenKeys::most_keys;
/// The backward pass in tiles has at least this many tasks if there are enough tiles. Since the division into tasks
/// affects the bits of sums, the number is frozen. More tasks would need more memory, as each has its own dQ.
inline constexpr i64 least_tasks = 16;

namespace {  // a copy for each file that uses it: core/kernels/README.md

struct Sizes {
  i64 B = 0, n = 0, m = 0, h = 0, d_k = 0, d_v = 0;
};

/// One head of one batch row.
struct Head {
  i64 b, head;
};

/// A matrix inside a packed product: one head's Q, K, V or a gradient of them.
template <class T> struct HeadMatrix {
  T* data;
  i64 stride;
  HeadMatrix from(i64 row) const { return {data + row * stride, stride}; }
  Mat<T> mat(i64 rows, i64 columns) const { return {data, rows, columns, stride}; }
};

/// Where the parts of each head are in the packed products.
template <class T> struct Packed {
  T *q, *kv;  // the same memory in self-attention
  i64 q_stride, kv_stride;
  i64 k_column, v_column;  // where all K and all V begin in a row of kv

  HeadMatrix<T> Q(const Sizes& s, Head at) const { return {q + at.b * s.n * q_stride + at.head * s.d_k, q_stride}; }
  HeadMatrix<T> K(const Sizes& s, Head at) const {
    return {kv + at.b * s.m * kv_stride + k_column + at.head * s.d_k, kv_stride};
  }
  HeadMatrix<T> V(const Sizes& s, Head at) const {
    return {kv + at.b * s.m * kv_stride + v_column + at.head * s.d_v, kv_stride};
  }
};

/// to[j, i] = factor * x[i, j], with the rows of `to` padded with zeros. Makes Q^T and dO^T, whose rows products read
/// as vectors.
template <class T> void transpose(HeadMatrix<const T> x, i64 rows, i64 columns, T factor, T* to, i64 to_stride) {
  for (i64 j = 0; j < columns; ++j) std::fill(to + j * to_stride + rows, to + (j + 1) * to_stride, T{0});
  for (i64 i = 0; i < rows; i += transposed_rows)
    transpose_rows<T>({x.data, rows, columns, x.stride}, i, std::min(rows, i + transposed_rows), to, to_stride, factor);
}

template <class T> void clear_rows(HeadMatrix<T> x, i64 rows, i64 columns) {
  for (i64 i = 0; i < rows; ++i) std::fill_n(x.data + i * x.stride, columns, T{0});
}

/// A gradient to compute: null if the gradient is not needed; `is_new` if it must be overwritten, not added to.
template <class T> struct Gradient {
  T* data = nullptr;
  bool is_new = false;
};
template <class T> Gradient<T> gradient_to_write(Grads& dx, size_t input) {
  if (!dx.wanted(input)) return {};
  const GradientBuffer into = dx.into(input);
  return {into.buffer.write<T>(), into.is_new};
}

/// A bias by distance in the order in which tiles read it, and the sums for its gradient. Entry j - i + n - 1 of the
/// bias belongs to query i and key j. The reversed copy has it at m - 1 - j + i, so that the entries of one key are in
/// the order of the queries.
struct DistanceBias {
  i64 h = 0, n = 0, m = 0;
  Tensor reversed{};  // [h, size()]; not defined without a bias

  bool defined() const { return reversed.defined(); }
  /// Entries of a head, with room for the query columns beyond the last query.
  i64 size() const { return std::max<i64>(0, m - 1) + padded(n); }
  i64 at(i64 key, i64 query) const { return m - 1 - key + query; }

  void set(const Tensor& bias) {
    const i64 count = distances(n, m);
    reversed = zeros({h, size()}, bias.dtype());
    dispatch_floating(bias.dtype(), "packed_attention", [&](auto t) {
      using T = decltype(t);
      const T* from = bias.data<T>();
      T* to = reversed.write<T>();
      for (i64 head = 0; head < h; ++head)
        std::reverse_copy(from + head * count, from + (head + 1) * count, to + head * size());
    });
  }
  /// Adds the bias to S^T, whose first query is `begin` and whose first key is `first`.
  template <class T> void add(const Scores<T>& S, i64 head, i64 begin, i64 first) const {
    const T* bias = reversed.data<T>() + head * size();
    for (i64 j = 0; j < S.keys; ++j) add_to(S.width, bias + at(first + j, begin), S.row(j));
  }
  /// Adds scaled_dS^T of `rows` queries to the sums of a task; `begin` and `first` as above.
  template <class T> void add_gradient(const Scores<T>& scaled_dS, i64 rows, i64 begin, i64 first, double* sums) const {
    for (i64 j = 0; j < scaled_dS.keys; ++j) {
      double* sum = sums + at(first + j, begin);
      const T* row = scaled_dS.row(j);
#pragma omp simd
      for (i64 i = 0; i < rows; ++i) sum[i] += static_cast<double>(row[i]);
    }
  }
  /// The gradient [h, n + m - 1]: the sums of all tasks, [B, h, tasks, size()], added in order.
  /// scaled_dS contains the factor `score_factor`, by which a bias is not multiplied, so it is divided out.
  Tensor gradient(const Tensor& sums, double score_factor, Dtype dtype) const {
    const i64 B = sums.size(0), tasks = sums.size(2), count = distances(n, m);
    Tensor total = zeros({h, count}, f64);
    double* to = total.write<double>();
    for (i64 row = 0; row < B * h * tasks; ++row) {
      const i64 head = (row / tasks) % h;
      const double* from = sums.data<double>() + row * size();
      for (i64 e = 0; e < count; ++e) to[head * count + count - 1 - e] += from[e] / score_factor;
    }
    return total.to(dtype);
  }
};

/// The common part of both operations.
struct PackedHeads {
  static constexpr std::string_view name = "packed_attention";
  Sizes s;  // h, d_k and d_v are given; `prepare` reads the others from the inputs
  Mask mask;
  RowDropout dropout;
  bool self = true;
  Saved q{}, kv{};
  DistanceBias bias{};

  /// Saves the inputs, reads the sizes and checks that everything fits. In self-attention `queries` is qkv, and
  /// `given_keys_values` is not defined. The bias on the scores may be undefined.
  void prepare(const Tensor& queries, const Tensor& given_keys_values, const Tensor& score_bias) {
    self = !given_keys_values.defined();
    const Tensor keys_values = self ? queries : given_keys_values;
    q = queries;
    kv = keys_values;
    check(s.h > 0 && s.d_k > 0 && s.d_v > 0, name, "needs at least one head and sizes above 0, got ", s.h, " heads of ",
          s.d_k, " and ", s.d_v);
    check(queries.rank() == 3 && keys_values.rank() == 3, name, "inputs need shape [B, length, columns], have ",
          queries.shape(), " and ", keys_values.shape());
    const i64 q_columns = s.h * s.d_k, kv_columns = s.h * (s.d_k + s.d_v);
    const i64 needed_q = self ? q_columns + kv_columns : q_columns, needed_kv = self ? needed_q : kv_columns;
    check(queries.size(2) == needed_q && keys_values.size(2) == needed_kv, name, s.h, " heads of ", s.d_k, " and ",
          s.d_v, " need ", needed_q, self ? "" : " and ", self ? "" : std::to_string(needed_kv), " columns, got ",
          queries.shape(), " and ", keys_values.shape());
    check(queries.size(0) == keys_values.size(0), name, "batch sizes differ (", queries.size(0), " and ",
          keys_values.size(0), ")");
    dropout.check_usable(name);
    s.B = queries.size(0);
    s.n = queries.size(1);
    s.m = keys_values.size(1);
    mask.check_fits(s.B, s.h, s.n, s.m);
    if (score_bias.defined()) prepare_bias(score_bias);
  }
  void prepare_bias(const Tensor& given) {
    check(given.rank() == 2 && given.size(0) == s.h && given.size(1) == distances(s.n, s.m), name, "a bias of ", s.h,
          " heads for ", s.n, " queries and ", s.m, " keys has shape [", s.h, ", ", distances(s.n, s.m), "], not ",
          given.shape());
    bias = {.h = s.h, .n = s.n, .m = s.m};
    bias.set(given);
  }

  template <class T> Packed<T> packed(T* q_data, T* kv_data) const {
    const i64 all_k = s.h * s.d_k, all_v = s.h * s.d_v;
    if (self) return {q_data, q_data, 2 * all_k + all_v, 2 * all_k + all_v, all_k, 2 * all_k};
    return {q_data, kv_data, all_k, all_k + all_v, 0, all_k};
  }
  template <class T> Packed<const T> inputs() const { return packed<const T>(q.get().data<T>(), kv.get().data<T>()); }
  /// O of a head, or dO, in a tensor [B, n, h d_v].
  template <class T> HeadMatrix<T> output(T* y, Head at) const {
    return {y + (at.b * s.n * s.h + at.head) * s.d_v, s.h * s.d_v};
  }
  Head head(i64 i) const { return {i / s.h, i % s.h}; }
  double score_factor() const { return 1.0 / std::sqrt(static_cast<double>(s.d_k)); }

  /// Queries [begin, end) of a head.
  QuerySpan span(Head at, i64 begin, i64 end) const { return {at.b, at.head, begin, end, s.n, s.m}; }

  /// S^T = K Q^T + bias for queries from `begin` on and S.keys keys from `first` on. Q^T contains the factor
  /// 1 / sqrt(d_k).
  template <class T>
  void compute_scores(HeadMatrix<const T> K, const T* Q_T, i64 stride, Head at, i64 begin, i64 first,
                      const Scores<T>& S) const {
    gemm_in_task<T>(K.from(first).mat(S.keys, s.d_k), {Q_T, s.d_k, S.width, stride},
                    {S.data, S.keys, S.width, S.stride});
    if (bias.defined()) bias.add(S, at.head, begin, first);
  }

  /// Draws dropout's factors m^T for `keys` keys from `first` on and `width` queries from `begin` on: `width` numbers
  /// for each key. In dropout's mask, a key is a row and a query a column; `begin` and `width` are multiples of the
  /// decisions in a block.
  template <class T> void draw_factors(Head at, i64 begin, i64 width, i64 first, i64 keys, T* factors) const {
    const i64 blocks = blocks_of_row(s.n), tile_blocks = width / decisions_per_block;
    const i64 start = ((at.b * s.h + at.head) * s.m + first) * blocks + begin / decisions_per_block;
    if (tile_blocks == blocks) return dropout_factors(dropout.draw, dropout.p, start, keys * blocks, factors);
    for (i64 j = 0; j < keys; ++j)
      dropout_factors(dropout.draw, dropout.p, start + j * blocks, tile_blocks, factors + j * width);
  }
};

/// PackedHeads without inputs; `prepare` takes these, and reads the other sizes from them.
inline PackedHeads packed_heads_of(const HeadSizes& heads, const Mask& mask, const AttentionWeightOptions& options) {
  return {.s = {.h = heads.h, .d_k = heads.d_k, .d_v = heads.d_v}, .mask = mask, .dropout = {options.p, options.draw}};
}

}  // namespace

static_assert(width_multiple == decisions_per_block, "a tile of queries is drawn in whole blocks");

}  // namespace orrery::packed_heads
