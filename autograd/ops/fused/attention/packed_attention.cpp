// Chapter 8. Attention of all heads at once, read from packed products and written back to one, without a copy.
//
//   S = Q K^T / sqrt(d_k) + bias      P = softmax of each row of S over the allowed keys      W = m P      O = W V
// where m are dropout's factors, 0 or 1 / (1 - p). A bias by distance is optional; the gradient of each of its entries
// is the sum of dS over all pairs with that distance. Backward, from dO, with the derivatives of
// autograd/ops/matmul.cpp and autograd/ops/softmax.cpp:
//   dV = W^T dO      dW = dO V^T      dP = m dW      dS = P (dP - sum over keys of P dP)
//   dQ = dS K / sqrt(d_k)             dK = dS^T Q / sqrt(d_k)
// The code keeps dS / sqrt(d_k), as `scaled_dS`.
// The composed form, autograd/ops/attention.cpp, is the one to read: there each line is an operation of its own, and
// every head is first copied. Here a task is one head of one batch row, and its matrices are columns of the packed
// products. Queries are processed in tiles, so that the scores, weights and gradients of a tile stay in the cache of a
// core. Scores are stored transposed, one row per key (autograd/ops/fused/attention/scores.h). Keys beyond a padding
// length are never read, and blocks of 64 keys that no query of a tile may see are skipped. P is saved, negated where
// dropout drops, so that one tensor holds both P and m; without a tape nothing is saved. For many keys,
// autograd/ops/fused/attention/tiled_attention.h computes the same without storing P, which has B h n m numbers.
// Speeds: apps/measure/bench/README.md. Shapes: qkv [B, n, h (2 d_k + d_v)], or q [B, n, h d_k] and kv [B, m, h (d_k +
// d_v)]; O [B, n, h d_v].
#include "autograd/ops/fused/attention/packed_attention.h"

#include "autograd/ops/fused/attention/packed_heads.h"
#include "autograd/ops/fused/attention/tiled_attention.h"

namespace orrery {
using namespace kernels;
namespace {

using namespace packed_heads;

template <class T> void drop_row(i64 n, const T* m, T* P, T* W) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) {
    W[j] = P[j] * m[j];
    P[j] = m[j] == T{0} ? -P[j] : P[j];
  }
}

struct PackedAttention : PackedHeads {
  bool recorded = true;  // backward may follow, so the weights must be kept
  Saved weights;         // P^T [B, h, m, padded(n)], negative where dropout drops

  /// In self-attention `queries` is qkv, and `keys_values` is not defined.
  Tensor forward(const Tensor& queries, const Tensor& keys_values = {}, const Tensor& score_bias = {}) {
    prepare(queries, keys_values, score_bias);
    Tensor y = Tensor::empty({s.B, s.n, s.h * s.d_v}, queries.dtype());
    Tensor P = Tensor::empty({recorded ? s.B * s.h : 0, s.m, padded(s.n)}, queries.dtype());
    dispatch_floating(queries.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const auto in = inputs<T>();
      T *out = y.write<T>(), *all = recorded ? P.write<T>() : nullptr;
      tasks_with_scratch<T>(
          s.B * s.h, s.d_k * padded(s.n) + (recorded ? 2 : 3) * query_tile * s.m,
          [&](i64 i, T* scratch) { head_forward(in, head(i), out, all, scratch); }, work());
    });
    weights = P;
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const Gradient<T> dq = gradient_to_write<T>(dx, 0), dkv = self ? dq : gradient_to_write<T>(dx, 1);
      const bool wants_bias = bias.defined() && dx.wanted(2);
      Tensor sums = wants_bias ? zeros({s.B, s.h, 1, bias.size()}, f64) : Tensor();
      const Backward<T> pass{.in = inputs<T>(),
                             .out = packed<T>(dq.data, dkv.data),
                             .dy = dy.data<T>(),
                             .weights = weights.get().data<T>(),
                             .bias_sums = wants_bias ? sums.write<double>() : nullptr,
                             .q_is_new = dq.is_new,
                             .kv_is_new = dkv.is_new};
      tasks_with_scratch<T>(
          s.B * s.h, s.d_v * padded(s.n) + 2 * query_tile * s.m,
          [&](i64 i, T* scratch) { head_backward(pass, head(i), scratch); }, 2 * work());
      if (wants_bias) dx.add(2, bias.gradient(sums, score_factor(), dy.dtype()));
    });
  }

 private:
  // Of the forward pass, for `parallel_tasks`.
  i64 work() const { return s.B * s.h * s.n * s.m * (s.d_k + s.d_v + element_work); }

  // What all tasks of a backward pass read and write.
  template <class T> struct Backward {
    Packed<const T> in;
    Packed<T> out;
    const T *dy, *weights;
    double* bias_sums;  // for each head; null if not needed
    bool q_is_new, kv_is_new;
  };

  template <class T> void head_forward(const Packed<const T>& in, Head at, T* y, T* all_weights, T* scratch) const {
    const i64 stride = padded(s.n);
    const HeadMatrix<const T> Q = in.Q(s, at), K = in.K(s, at), V = in.V(s, at);
    const HeadMatrix<T> O = output(y, at);
    T *Q_T = scratch, *W = Q_T + s.d_k * stride, *factors = W + query_tile * s.m, *unsaved = factors + query_tile * s.m;
    transpose(Q, s.n, s.d_k, static_cast<T>(score_factor()), Q_T, stride);
    for (i64 begin = 0; begin < s.n; begin += query_tile) {
      const i64 end = std::min(s.n, begin + query_tile), width = padded(end - begin);
      const SeenKeys seen(mask, span(at, begin, end), {0, s.m});
      const i64 first = seen.keys().first, keys = seen.keys().count();
      const Scores<T> P = recorded ? Scores<T>{all_weights + ((at.b * s.h + at.head) * s.m + first) * stride + begin,
                                               keys, width, stride}
                                   : Scores<T>{unsaved, keys, width, width};
      seen.for_runs([&](KeyRange run) {
        compute_scores(K, Q_T + begin, stride, at, begin, run.first, P.rows(run.first - first, run.count()));
      });
      softmax_columns(P, seen);
      bool is_first = true;
      seen.for_runs([&](KeyRange run) {
        const Scores<T> P_run = P.rows(run.first - first, run.count());
        const Scores<T> kept = dropout.p == 0 ? P_run : Scores<T>{W, run.count(), width, width};
        if (dropout.p > 0) drop_weights(P_run, kept, factors, at, begin, run.first);
        gemm_in_task<T>({kept.data, kept.keys, end - begin, kept.stride}, V.from(run.first).mat(kept.keys, s.d_v),
                        O.from(begin).mat(end - begin, s.d_v), Trans::a, !is_first);
        is_first = false;
      });
      if (is_first) clear_rows(O.from(begin), end - begin, s.d_v);
    }
  }

  // W = m P for a tile; P becomes negative where m is 0.
  template <class T>
  void drop_weights(const Scores<T>& P, const Scores<T>& W, T* factors, Head at, i64 begin, i64 first) const {
    draw_factors(at, begin, P.width, first, P.keys, factors);
    for (i64 j = 0; j < P.keys; ++j) drop_row(P.width, factors + j * P.width, P.row(j), W.row(j));
  }

  template <class T> void head_backward(const Backward<T>& pass, Head at, T* scratch) const {
    const i64 stride = padded(s.n), index = at.b * s.h + at.head;
    const HeadMatrix<const T> V = pass.in.V(s, at), dO = output(pass.dy, at);
    const Packed<T>& out = pass.out;
    const T* P = pass.weights + index * s.m * stride;
    double* bias_sums = pass.bias_sums ? pass.bias_sums + index * bias.size() : nullptr;
    T *dO_T = scratch, *W = dO_T + s.d_v * stride, *scaled_dS = W + query_tile * s.m;
    const T keep_factor = static_cast<T>(dropout.p == 0 ? 1.0 : keep_scale(dropout.p)),
            factor = static_cast<T>(score_factor());
    transpose(dO, s.n, s.d_v, T{1}, dO_T, stride);
    if (out.kv && pass.kv_is_new && s.n == 0) {
      clear_rows(out.K(s, at), s.m, s.d_k);
      clear_rows(out.V(s, at), s.m, s.d_v);
    }
    for (i64 begin = 0; begin < s.n; begin += query_tile) {
      const i64 end = std::min(s.n, begin + query_tile), rows = end - begin, width = padded(rows);
      const SeenKeys seen(mask, span(at, begin, end), {0, s.m});
      const i64 first = seen.keys().first;
      PerQuery<T> inner;
      inner.fill(T{0});
      seen.for_runs([&](KeyRange run) {
        const i64 keys = run.count(), at_run = (run.first - first) * width;
        const T* P_run = P + run.first * stride + begin;
        T *W_run = W + at_run, *dW = scaled_dS + at_run;
        gemm_in_task<T>(V.from(run.first).mat(keys, s.d_v), {dO_T + begin, s.d_v, width, stride}, {dW, keys, width});
        sum_over_keys(keys, width, inner, [&](i64 j, T* part) {
          restore_weights(width, keep_factor, P_run + j * stride, dW + j * width, W_run + j * width, part);
        });
      });
      const bool is_new = pass.kv_is_new && begin == 0;
      bool adds = !pass.q_is_new;
      seen.for_runs([&](KeyRange run) {
        const i64 keys = run.count(), at_run = (run.first - first) * width;
        const Scores<T> dS{scaled_dS + at_run, keys, width, width};
        for (i64 j = 0; j < keys; ++j)
          score_gradient(width, keep_factor, factor, P + (run.first + j) * stride + begin, inner.data(), dS.row(j));
        if (bias_sums) bias.add_gradient(dS, rows, begin, run.first, bias_sums);
        add_run(pass, at, begin, run, {dS.data, keys, rows, width}, {W + at_run, keys, rows, width}, adds, !is_new);
        adds = true;
      });
      if (out.q && !adds) clear_rows(out.Q(s, at).from(begin), rows, s.d_k);
      if (out.kv && is_new) clear_unseen(out, at, seen);
    }
  }

  // dQ = scaled_dS K, dK = scaled_dS^T Q and dV = W^T dO of the queries of a tile, which begins with `begin`, and of a
  // run of keys. Whether a gradient is added to what is there, or replaces it: `adds_q` and `adds_kv`.
  template <class T>
  void add_run(const Backward<T>& pass, Head at, i64 begin, KeyRange run, Mat<const T> scaled_dS_T, Mat<const T> W_T,
               bool adds_q, bool adds_kv) const {
    const i64 keys = scaled_dS_T.rows, rows = scaled_dS_T.cols;
    const Packed<T>& out = pass.out;
    if (out.q)
      gemm_in_task<T>(scaled_dS_T, pass.in.K(s, at).from(run.first).mat(keys, s.d_k),
                      out.Q(s, at).from(begin).mat(rows, s.d_k), Trans::a, adds_q);
    if (!out.kv) return;
    gemm_in_task<T>(scaled_dS_T, pass.in.Q(s, at).from(begin).mat(rows, s.d_k),
                    out.K(s, at).from(run.first).mat(keys, s.d_k), Trans::none, adds_kv);
    gemm_in_task<T>(W_T, output(pass.dy, at).from(begin).mat(rows, s.d_v),
                    out.V(s, at).from(run.first).mat(keys, s.d_v), Trans::none, adds_kv);
  }

  // The gradients of keys and values between the runs are 0.
  template <class T> void clear_unseen(const Packed<T>& out, Head at, const SeenKeys& seen) const {
    const auto clear = [&](i64 first, i64 limit) {
      clear_rows(out.K(s, at).from(first), limit - first, s.d_k);
      clear_rows(out.V(s, at).from(first), limit - first, s.d_v);
    };
    i64 first = 0;
    seen.for_runs([&](KeyRange run) {
      clear(first, run.first);
      first = run.limit;
    });
    clear(first, s.m);
  }
};

// Whether attention with these keys and values is computed in tiles. Depends on the shape alone.
bool in_tiles(const Variable& kv) { return kv.shape().rank() == 3 && kv.size(1) > most_keys; }

}  // namespace

Variable packed_attention(const Variable& qkv, const HeadSizes& heads, const Mask& mask,
                          const AttentionWeightOptions& options) {
  if (in_tiles(qkv)) return tiled_attention(qkv, heads, mask, options);
  const Variable& bias = options.bias;
  const PackedAttention operation{packed_heads_of(heads, mask, options), tape::records(std::array{&qkv, &bias}), {}};
  return bias.defined() ? apply(operation, qkv, Variable(), bias) : apply(operation, qkv);
}

Variable packed_attention(const Variable& q, const Variable& kv, const HeadSizes& heads, const Mask& mask,
                          const AttentionWeightOptions& options) {
  if (in_tiles(kv)) return tiled_attention(q, kv, heads, mask, options);
  const Variable& bias = options.bias;
  const PackedAttention operation{packed_heads_of(heads, mask, options), tape::records(std::array{&q, &kv, &bias}), {}};
  return bias.defined() ? apply(operation, q, kv, bias) : apply(operation, q, kv);
}

}  // namespace orrery
