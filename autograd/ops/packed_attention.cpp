// Chapter 8. Attention of all heads at once, read from packed products and written back to one, without a copy.
//
//   S = Q K^T / sqrt(d_k)      P = softmax of each row of S over the allowed keys      W = m P      O = W V
// with m dropout's factors (0 or 1 / (1 - p)). Backward, from dO, with the derivatives of ops/matmul.cpp and
// ops/softmax.cpp:
//   dV = W^T dO      dW = dO V^T      dP = m dW      dS = P (dP - sum over keys of P dP) / sqrt(d_k)
//   dQ = dS K        dK = dS^T Q
// The composed form is ops/attention.cpp, the one to read: there each line is an operation of its own and every head is
// first copied out. Here one task is one head of one batch row; its matrices are columns of the packed products.
// Queries go by in tiles, so that a tile's scores, weights and gradients stay in the core's own cache, and they lie
// transposed, a row for each key: softmax then works down the columns, 16 queries in one instruction, without a sum
// across a register. Keys that padding cuts off are never read; those that no query of a tile may see, above the causal
// diagonal, cost nothing. P is saved, with the sign bit where dropout drops: one tensor tells both P and m.
// Shapes: qkv [B, n, h (2 d_k + d_v)], or q [B, n, h d_k] and kv [B, m, h (d_k + d_v)]; O [B, n, h d_v].
// Read next: autograd/fused_samples.cpp
#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "autograd/row_dropout.h"
#include "core/mask.h"
#include "core/scores.h"
#include "core/small_product.h"

namespace orrery {
namespace {

// Heads that share scratch memory form at most so many groups: enough for every core, few enough to stay small.
constexpr i64 most_groups = 32;

struct Sizes {
  i64 B = 0, n = 0, m = 0, h = 0, d_k = 0, d_v = 0;
};

// A matrix inside a packed product: one head's Q, K, V or a gradient of them.
template <class T>
struct Part {
  T* data;
  i64 stride;
};

// The columns of the packed products where head `head` of batch row `b` keeps its parts.
template <class T>
struct Packed {
  T *q, *kv;  // the same memory in self-attention
  i64 q_stride, kv_stride;
  i64 k_column, v_column;  // where all K and all V begin in a row of kv

  Part<T> Q(const Sizes& s, i64 b, i64 head) const { return {q + b * s.n * q_stride + head * s.d_k, q_stride}; }
  Part<T> K(const Sizes& s, i64 b, i64 head) const {
    return {kv + b * s.m * kv_stride + k_column + head * s.d_k, kv_stride};
  }
  Part<T> V(const Sizes& s, i64 b, i64 head) const {
    return {kv + b * s.m * kv_stride + v_column + head * s.d_v, kv_stride};
  }
};

template <class T, class Pointer>
Packed<T> packed(const Sizes& s, bool self, Pointer q, Pointer kv) {
  const i64 all_k = s.h * s.d_k, all_v = s.h * s.d_v;
  if (self) return {q, q, 2 * all_k + all_v, 2 * all_k + all_v, all_k, 2 * all_k};
  return {q, kv, all_k, all_k + all_v, 0, all_k};
}

// to[j, i] = factor * x[i, j], rows of `to` padded with zeros: Q^T and dO^T, whose rows products can read as vectors.
template <class T>
void transpose(Part<const T> x, i64 rows, i64 columns, T factor, T* to, i64 to_stride) {
  for (i64 j = 0; j < columns; ++j) std::fill(to + j * to_stride + rows, to + (j + 1) * to_stride, T{0});
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < columns; ++j) to[j * to_stride + i] = factor * x.data[i * x.stride + j];
}

template <class T>
void clear_rows(Part<T> x, i64 rows, i64 columns) {
  for (i64 i = 0; i < rows; ++i) std::fill_n(x.data + i * x.stride, columns, T{0});
}

template <class T>
void drop_row(i64 n, const T* m, T* P, T* W) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) {
    W[j] = P[j] * m[j];
    P[j] = m[j] == T{0} ? -P[j] : P[j];
  }
}

struct PackedAttention {
  static constexpr std::string_view name = "packed_attention";
  Sizes s;  // h, d_k and d_v are given, the others are read from the inputs
  Mask mask;
  RowDropout dropout;
  bool self = true;
  Saved q, kv;
  Saved weights;  // P^T [B, h, m, padded(n)], negative where dropout drops

  Tensor forward(const Tensor& qkv) { return run(qkv, qkv, true); }
  Tensor forward(const Tensor& queries, const Tensor& keys_values) { return run(queries, keys_values, false); }

  void backward(const Tensor& dy, Grads& dx) {
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const auto opened = [&](size_t input) -> Gradient<T> {
        if (!dx.wanted(input)) return {nullptr, false};
        const Into into = dx.into(input);
        return {into.buffer.write<T>(), into.first};
      };
      const Gradient<T> dq = opened(0), dkv = self ? dq : opened(1);
      const auto in = packed<const T>(s, self, q.get().data<T>(), kv.get().data<T>());
      const auto out = packed<T>(s, self, dq.data, dkv.data);
      const T *d = dy.data<T>(), *P = weights.get().data<T>();
      for_heads<T>(s.d_v * padded(s.n) + 2 * query_tile * s.m, [&](i64 b, i64 head, T* scratch) {
        head_backward(in, {b, head}, d, P, out, dq.first, dkv.first, scratch);
      });
    });
  }

 private:
  struct Head {
    i64 b, head;
  };
  template <class T>
  struct Gradient {
    T* data;
    bool first;  // to be written, not added to
  };

  Tensor run(const Tensor& queries, const Tensor& keys_values, bool is_self) {
    self = is_self, q = queries, kv = keys_values;
    prepare(queries, keys_values);
    Tensor y = Tensor::empty({s.B, s.n, s.h * s.d_v}, queries.dtype());
    Tensor P = Tensor::empty({s.B, s.h, s.m, padded(s.n)}, queries.dtype());
    dispatch_floating(queries.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const auto in = packed<const T>(s, self, queries.data<T>(), keys_values.data<T>());
      T *out = y.write<T>(), *all = P.write<T>();
      for_heads<T>(s.d_k * padded(s.n) + 2 * query_tile * s.m, [&](i64 b, i64 head, T* scratch) {
        head_forward(in, {b, head}, out, all, scratch);
      });
    });
    weights = P;
    return y;
  }

  // Reads the sizes and checks that everything fits.
  void prepare(const Tensor& queries, const Tensor& keys_values) {
    check(s.h > 0 && s.d_k > 0 && s.d_v > 0, name, "needs at least one head and sizes above 0, got ", s.h, " heads of ",
          s.d_k, " and ", s.d_v);
    check(queries.rank() == 3 && keys_values.rank() == 3, name, "inputs need shape [B, length, columns], have ",
          queries.shape(), " and ", keys_values.shape());
    const i64 q_columns = s.h * s.d_k, kv_columns = s.h * (s.d_k + s.d_v);
    const i64 wanted_q = self ? q_columns + kv_columns : q_columns, wanted_kv = self ? wanted_q : kv_columns;
    check(queries.size(2) == wanted_q && keys_values.size(2) == wanted_kv, name, s.h, " heads of ", s.d_k, " and ",
          s.d_v, " need ", wanted_q, self ? "" : " and ", self ? "" : std::to_string(wanted_kv), " columns, got ",
          queries.shape(), " and ", keys_values.shape());
    check(queries.size(0) == keys_values.size(0), name, "batch sizes differ (", queries.size(0), " and ",
          keys_values.size(0), ")");
    dropout.check_probability(name);
    s.B = queries.size(0), s.n = queries.size(1), s.m = keys_values.size(1);
    mask.check_fits(s.B, s.h, s.n, s.m);
  }

  // body(b, head, scratch) for every head, with `scratch_size` numbers of memory of its own.
  template <class T, class Body>
  void for_heads(i64 scratch_size, const Body& body) const {
    const i64 heads = s.B * s.h, grain = std::max<i64>(1, (heads + most_groups - 1) / most_groups);
    Tensor memory = Tensor::empty({(heads + grain - 1) / grain, scratch_size}, dtype_of<T>);
    T* scratch = memory.write<T>();
    parallel_for(heads, grain, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) body(i / s.h, i % s.h, scratch + begin / grain * scratch_size);
    });
  }

  // What the queries [begin, end) may see, tables apart; lanes beyond are padding and see nothing. Returns the most.
  i64 limits(i64 b, i64 begin, i64 end, Lanes<i32>& limit) const {
    mask.limits(b, begin, end, s.n, s.m, limit.data());
    std::fill(limit.data() + (end - begin), limit.data() + padded(end - begin), 0);
    return limit[static_cast<size_t>(end - begin - 1)];  // a later query never sees less
  }

  template <class T>
  void hide_by_table(const Scores<T>& S, Head at, i64 begin, i64 end) const {
    for (i64 j = 0; j < S.keys; ++j) {
      for (i64 i = begin; i < end; ++i) {
        if (!mask.allowed(at.b, at.head, i, j, s.n, s.m)) S.row(j)[i - begin] = -std::numeric_limits<T>::infinity();
      }
    }
  }

  template <class T>
  void head_forward(const Packed<const T>& in, Head at, T* y, T* all_weights, T* scratch) const {
    const i64 stride = padded(s.n), y_stride = s.h * s.d_v;
    const Part<const T> Q = in.Q(s, at.b, at.head), K = in.K(s, at.b, at.head), V = in.V(s, at.b, at.head);
    T *Q_T = scratch, *W = Q_T + s.d_k * stride, *factors = W + query_tile * s.m;
    T* P = all_weights + (at.b * s.h + at.head) * s.m * stride;
    T* O = y + (at.b * s.n * s.h + at.head) * s.d_v;
    transpose(Q, s.n, s.d_k, static_cast<T>(1.0 / std::sqrt(static_cast<double>(s.d_k))), Q_T, stride);
    for (i64 begin = 0; begin < s.n; begin += query_tile) {
      const i64 end = std::min(s.n, begin + query_tile), width = padded(end - begin);
      Lanes<i32> limit;
      const Scores<T> tile{P + begin, limits(at.b, begin, end, limit), width, stride};
      small_product<T>(tile.keys, width, s.d_k, {K.data, K.stride, 1}, Q_T + begin, stride, tile.data, stride, false);
      if (mask.has_table()) hide_by_table(tile, at, begin, end);
      softmax_columns(tile, limit);
      const Scores<T> kept = dropout.p == 0 ? tile : Scores<T>{W, tile.keys, width, width};
      if (dropout.p > 0) drop_weights(tile, kept, factors, at, begin);
      small_product<T>(end - begin, s.d_v, tile.keys, {kept.data, 1, kept.stride}, V.data, V.stride,
                       O + begin * y_stride, y_stride, false);
    }
  }

  // W = m P for a tile; P becomes negative where m is 0. A key is a row of the mask, a query a column.
  template <class T>
  void drop_weights(const Scores<T>& P, const Scores<T>& W, T* factors, Head at, i64 begin) const {
    const i64 blocks = blocks_of_row(s.n), first = (at.b * s.h + at.head) * s.m * blocks + begin / decisions_per_block;
    const i64 tile_blocks = std::min(blocks - begin / decisions_per_block, query_tile / decisions_per_block);
    const i64 stride = tile_blocks * decisions_per_block, n = std::min(P.width, stride);
    if (tile_blocks == blocks) {
      dropout_factors(dropout.draw, dropout.p, first, P.keys * blocks, factors);
    } else {
      for (i64 j = 0; j < P.keys; ++j)
        dropout_factors(dropout.draw, dropout.p, first + j * blocks, tile_blocks, factors + j * stride);
    }
    for (i64 j = 0; j < P.keys; ++j) drop_row(n, factors + j * stride, P.row(j), W.row(j));
  }

  template <class T>
  void head_backward(const Packed<const T>& in, Head at, const T* dy, const T* all_weights, const Packed<T>& out,
                     bool first_q, bool first_kv, T* scratch) const {
    const i64 stride = padded(s.n), y_stride = s.h * s.d_v;
    const Part<const T> Q = in.Q(s, at.b, at.head), K = in.K(s, at.b, at.head), V = in.V(s, at.b, at.head);
    const T *P = all_weights + (at.b * s.h + at.head) * s.m * stride, *dO = dy + (at.b * s.n * s.h + at.head) * s.d_v;
    T *dO_T = scratch, *W = dO_T + s.d_v * stride, *dS = W + query_tile * s.m;
    const T kept = static_cast<T>(dropout.p == 0 ? 1.0 : keep_scale(dropout.p));
    const T factor = static_cast<T>(1.0 / std::sqrt(static_cast<double>(s.d_k)));
    transpose(Part<const T>{dO, y_stride}, s.n, s.d_v, T{1}, dO_T, stride);
    if (out.kv && first_kv) {
      clear_rows(out.K(s, at.b, at.head), s.m, s.d_k);
      clear_rows(out.V(s, at.b, at.head), s.m, s.d_v);
    }
    for (i64 begin = 0; begin < s.n; begin += query_tile) {
      const i64 end = std::min(s.n, begin + query_tile), rows = end - begin, width = padded(rows);
      Lanes<i32> limit;
      Lanes<T> inner;
      const i64 keys = limits(at.b, begin, end, limit);
      const T* d = dO + begin * y_stride;
      small_product<T>(keys, width, s.d_v, {V.data, V.stride, 1}, dO_T + begin, stride, dS, width, false);  // dW
      sum_over_keys(keys, width, inner, [&](i64 j, T* part) {
        restore_weights(width, kept, P + j * stride + begin, dS + j * width, W + j * width, part);
      });
      for (i64 j = 0; j < keys; ++j)
        score_gradient(width, kept, factor, P + j * stride + begin, inner.data(), dS + j * width);
      if (out.q) {
        const Part<T> dQ = out.Q(s, at.b, at.head);
        small_product<T>(rows, s.d_k, keys, {dS, 1, width}, K.data, K.stride, dQ.data + begin * dQ.stride, dQ.stride,
                         !first_q);
      }
      if (out.kv) {
        const Part<T> dK = out.K(s, at.b, at.head), dV = out.V(s, at.b, at.head);
        small_product<T>(keys, s.d_k, rows, {dS, width, 1}, Q.data + begin * Q.stride, Q.stride, dK.data, dK.stride,
                         true);
        small_product<T>(keys, s.d_v, rows, {W, width, 1}, d, y_stride, dV.data, dV.stride, true);
      }
    }
  }
};

}  // namespace

Variable packed_attention(const Variable& qkv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask, double p,
                          const Draw& draw) {
  return apply(PackedAttention{{.h = num_heads, .d_k = d_k, .d_v = d_v}, mask, {p, draw}, true, {}, {}, {}}, qkv);
}

Variable packed_attention(const Variable& q, const Variable& kv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask,
                          double p, const Draw& draw) {
  return apply(PackedAttention{{.h = num_heads, .d_k = d_k, .d_v = d_v}, mask, {p, draw}, false, {}, {}, {}}, q, kv);
}

}  // namespace orrery
