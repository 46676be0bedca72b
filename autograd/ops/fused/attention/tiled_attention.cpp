// Chapter 8. Attention in tiles: the loops over tiles, and who computes which.
//
// The formulas are in tiled_attention.h. In the forward pass, a task is one tile of queries of one head. In the
// backward pass, a task owns tiles of keys. With few heads, the tiles of a head are divided among several tasks, called
// parts. Each part has its own dQ; they are added in order at the end, so that the bits depend on the shape alone.
// Scores are stored transposed, one row per key (autograd/ops/fused/attention/scores.h).
#include "autograd/ops/fused/attention/tiled_attention.h"

#include <numeric>

#include "autograd/ops/fused/attention/packed_heads.h"

namespace orrery {
using namespace kernels;
namespace {

using namespace packed_heads;

i64 tiles_of(i64 n, i64 size) { return (n + size - 1) / size; }

// Multiplies row i of x by factor[i].
template <class T> void scale_rows(HeadMatrix<T> x, i64 rows, i64 columns, const PerQuery<T>& factor) {
  for (i64 i = 0; i < rows; ++i) {
    T *row = x.data + i * x.stride, f = factor[static_cast<size_t>(i)];
#pragma omp simd
    for (i64 j = 0; j < columns; ++j) row[j] *= f;
  }
}

struct TiledAttention : PackedHeads {
  TileSizes tile;
  Saved O, softmax;  // [B, n, h d_v]; largest and 1 / sum of every query, [B h, 2, padded(n)]

  /// In self-attention `query_input` is qkv, and `keys_values` is not defined.
  Tensor forward(const Tensor& query_input, const Tensor& keys_values = {}, const Tensor& score_bias = {}) {
    check(tile.queries > 0 && tile.queries <= query_tile && tile.queries % width_multiple == 0 && tile.keys > 0 &&
              tile.keys <= SeenKeys::most_keys,
          name, "no tiles of ", tile.queries, " queries and ", tile.keys, " keys");
    prepare(query_input, keys_values, score_bias);
    Tensor y = Tensor::empty({s.B, s.n, s.h * s.d_v}, query_input.dtype());
    Tensor saved = Tensor::empty({s.B * s.h, 2, padded(s.n)}, query_input.dtype());
    dispatch_floating(query_input.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const auto in = inputs<T>();
      T *out = y.write<T>(), *all_saved = saved.write<T>();
      for_query_tiles<T>((s.d_k + 2 * tile.keys) * tile.queries, [&](const Queries& at, T* scratch) {
        forward_tile(in, at, output(out, at.head).from(at.begin), all_saved + saved_index(at), scratch);
      });
    });
    O = y;
    softmax = saved;
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const Gradient<T> dq = gradient_to_write<T>(dx, 0), dkv = self ? dq : gradient_to_write<T>(dx, 1);
      const i64 heads = s.B * s.h, key_tiles = tiles_of(s.m, tile.keys);
      const i64 parts = std::clamp<i64>(tiles_of(least_tasks, std::max<i64>(1, heads)), 1, std::max<i64>(1, key_tiles));
      Tensor prepared = Tensor::empty({heads * query_tiles(), prepared_size()}, dy.dtype());
      Tensor sums = Tensor::empty({heads, parts, dq.data ? s.n : 0, s.d_k}, dy.dtype());
      const bool wants_bias = bias.defined() && dx.wanted(2);
      Tensor bias_sums = wants_bias ? zeros({s.B, s.h, parts, bias.size()}, f64) : Tensor();
      const Backward<T> pass{.in = inputs<T>(),
                             .out = packed<T>(dq.data, dkv.data),
                             .dy = dy.data<T>(),
                             .O = O.get().data<T>(),
                             .softmax = softmax.get().data<T>(),
                             .prepared = prepared.write<T>(),
                             .sums = dq.data ? sums.write<T>() : nullptr,
                             .bias_sums = wants_bias ? bias_sums.write<double>() : nullptr,
                             .parts = parts,
                             .q_is_new = dq.is_new,
                             .kv_is_new = dkv.is_new};
      for_query_tiles<T>(0, [&](const Queries& at, T*) { prepare_queries(pass, at); });
      constexpr i64 matrices = 3;  // W, scaled_dS and dropout's factors
      tasks_with_scratch<T>(heads * parts, matrices * tile.keys * tile.queries,
                            [&](i64 i, T* scratch) { backward_part(pass, head(i / parts), i % parts, scratch); });
      if (dq.data) for_query_tiles<T>(0, [&](const Queries& at, T*) { add_parts(pass, at); });
      if (wants_bias) dx.add(2, bias.gradient(bias_sums, score_factor(), dy.dtype()));
    });
  }

 private:
  // One tile of queries of a head.
  struct Queries {
    Head head;
    i64 index, begin, end;
    i64 rows() const { return end - begin; }
    i64 width() const { return padded(end - begin); }
  };
  // What all tasks of a backward pass read and write.
  template <class T> struct Backward {
    Packed<const T> in;
    Packed<T> out;
    const T *dy, *O, *softmax;
    T* prepared;        // for each tile of queries: Q^T / sqrt(d_k), dO^T and D
    T* sums;            // dQ of each part of a head; null if not needed
    double* bias_sums;  // the same for the bias
    i64 parts;
    bool q_is_new, kv_is_new;
  };

  // The sums of one part of a head; null if not needed.
  template <class T> struct Sums {
    T* dQ;
    double* bias;
  };

  i64 query_tiles() const { return tiles_of(s.n, tile.queries); }
  i64 saved_index(const Queries& at) const { return head_index(at.head) * 2 * padded(s.n) + at.begin; }
  i64 head_index(Head at) const { return at.b * s.h + at.head; }
  Queries queries(Head at, i64 index) const {
    return {at, index, index * tile.queries, std::min(s.n, (index + 1) * tile.queries)};
  }

  // Calls body(queries, scratch) for every tile of queries of every head, in this order: the first, the last, the
  // second, the last but one, ... With a causal mask, later queries see more keys; in this order, every group of
  // adjacent tasks is about the same amount of work.
  template <class T, class Body> void for_query_tiles(i64 scratch_size, const Body& body) const {
    const i64 tiles = query_tiles();
    tasks_with_scratch<T>(s.B * s.h * tiles, scratch_size, [&](i64 i, T* scratch) {
      const i64 k = i % tiles;
      body(queries(head(i / tiles), k % 2 == 0 ? k / 2 : tiles - 1 - k / 2), scratch);
    });
  }

  template <class T>
  void forward_tile(const Packed<const T>& in, const Queries& at, HeadMatrix<T> O_i, T* largest, T* scratch) const {
    const HeadMatrix<const T> K = in.K(s, at.head), V = in.V(s, at.head);
    T *Q_T = scratch, *scores = Q_T + s.d_k * tile.queries, *factors = scores + tile.keys * tile.queries;
    PerQuery<T> rescale;
    RunningSoftmax<T> running;
    const QuerySpan span_i = span(at.head, at.begin, at.end);
    const KeyRange range = mask.range(span_i);
    bool is_first = true;
    transpose(in.Q(s, at.head).from(at.begin), at.rows(), s.d_k, static_cast<T>(score_factor()), Q_T, at.width());
    for (i64 begin = range.first; begin < range.limit; begin += tile.keys) {
      const SeenKeys seen(mask, span_i, {begin, begin + tile.keys});
      seen.for_runs([&](KeyRange run) {
        const Scores<T> S{scores, run.count(), at.width(), at.width()};
        compute_scores(K, Q_T, S.width, at.head, at.begin, run.first, S);
        running.add(S, run, seen, rescale);
        if (dropout.p > 0) {
          draw_factors(at.head, at.begin, S.width, run.first, S.keys, factors);
          for (i64 j = 0; j < S.keys; ++j) multiply(S.width, factors + j * S.width, S.row(j));
        }
        if (!is_first) scale_rows(O_i, at.rows(), s.d_v, rescale);
        gemm_in_task<T>({S.data, S.keys, at.rows(), S.stride}, V.from(run.first).mat(S.keys, s.d_v),
                        O_i.mat(at.rows(), s.d_v), Trans::a, !is_first);
        is_first = false;
      });
    }
    if (is_first) clear_rows(O_i, at.rows(), s.d_v);
    T* inverse = largest + padded(s.n);
    for (i64 i = 0; i < at.width(); ++i) {
      // A query that sees nothing has only weights of 0.
      const bool sees = running.sum[i] != T{0};
      largest[i] = sees ? running.largest[i] : T{0};
      inverse[i] = sees ? T{1} / running.sum[i] : T{0};
    }
    std::copy_n(inverse, at.width(), rescale.data());
    scale_rows(O_i, at.rows(), s.d_v, rescale);
  }

  // What every tile of keys needs from a tile of queries: Q_i^T / sqrt(d_k), dO_i^T and D_i.
  i64 prepared_size() const { return (s.d_k + s.d_v + 1) * tile.queries; }
  template <class T> T* prepared(const Backward<T>& pass, const Queries& at) const {
    return pass.prepared + (head_index(at.head) * query_tiles() + at.index) * prepared_size();
  }
  template <class T> void prepare_queries(const Backward<T>& pass, const Queries& at) const {
    const i64 rows = at.rows(), width = at.width();
    T *Q_T = prepared(pass, at), *dO_T = Q_T + s.d_k * width, *D = dO_T + s.d_v * width;
    const HeadMatrix<const T> dO = output(pass.dy, at.head).from(at.begin);
    const HeadMatrix<const T> O_i = output(pass.O, at.head).from(at.begin);
    transpose(pass.in.Q(s, at.head).from(at.begin), rows, s.d_k, static_cast<T>(score_factor()), Q_T, width);
    transpose(dO, rows, s.d_v, T{1}, dO_T, width);
    std::fill_n(D, width, T{0});
    for (i64 i = 0; i < rows; ++i)
      D[i] =
          std::inner_product(dO.data + i * dO.stride, dO.data + i * dO.stride + s.d_v, O_i.data + i * O_i.stride, T{0});
  }

  // Part c of a head: tiles c, 2 parts - 1 - c, 2 parts + c, ... of its keys, so that no part has only tiles that few
  // queries see.
  template <class T> void backward_part(const Backward<T>& pass, Head at, i64 c, T* scratch) const {
    const i64 task = head_index(at) * pass.parts + c;
    const Sums<T> sums{pass.sums ? pass.sums + task * s.n * s.d_k : nullptr,
                       pass.bias_sums ? pass.bias_sums + task * bias.size() : nullptr};
    if (sums.dQ) std::fill_n(sums.dQ, s.n * s.d_k, T{0});
    for (i64 round = 0; round < tiles_of(tiles_of(s.m, tile.keys), pass.parts); ++round) {
      const i64 first = (round * pass.parts + (round % 2 == 0 ? c : pass.parts - 1 - c)) * tile.keys;
      if (first < s.m) backward_keys(pass, at, first, sums, scratch);
    }
  }

  // One tile of keys, which begins with key `first`, and all queries that see some of its keys.
  template <class T>
  void backward_keys(const Backward<T>& pass, Head at, i64 first, const Sums<T>& sums, T* scratch) const {
    const i64 last = std::min(s.m, first + tile.keys);
    if (pass.out.kv && pass.kv_is_new) {
      clear_rows(pass.out.K(s, at).from(first), last - first, s.d_k);
      clear_rows(pass.out.V(s, at).from(first), last - first, s.d_v);
    }
    for (i64 i = 0; i < query_tiles(); ++i) {
      const Queries queries_i = queries(at, i);
      const SeenKeys seen(mask, span(at, queries_i.begin, queries_i.end), {first, last});
      seen.for_runs([&](KeyRange run) { backward_run(pass, queries_i, run, seen, sums, scratch); });
    }
  }

  template <class T>
  void backward_run(const Backward<T>& pass, const Queries& at, KeyRange run, const SeenKeys& seen, const Sums<T>& sums,
                    T* scratch) const {
    const i64 rows = at.rows(), width = at.width(), first = run.first, keys = run.count();
    const HeadMatrix<const T> Q = pass.in.Q(s, at.head).from(at.begin), K = pass.in.K(s, at.head).from(first),
                              V = pass.in.V(s, at.head).from(first), dO = output(pass.dy, at.head).from(at.begin);
    const T *Q_T = prepared(pass, at), *dO_T = Q_T + s.d_k * width, *D = dO_T + s.d_v * width;
    const T *largest = pass.softmax + saved_index(at), *inverse = largest + padded(s.n);
    T *W = scratch, *scaled_dS = W + tile.keys * tile.queries, *factors = scaled_dS + tile.keys * tile.queries;
    compute_scores(pass.in.K(s, at.head), Q_T, width, at.head, at.begin, first, Scores<T>{W, keys, width, width});
    gemm_in_task<T>(V.mat(keys, s.d_v), {dO_T, s.d_v, width}, {scaled_dS, keys, width});  // dW
    const T factor = static_cast<T>(score_factor());
    const bool drops = dropout.p > 0;
    if (drops) {
      draw_factors(at.head, at.begin, width, first, keys, factors);
    } else {
      std::fill_n(factors, width, T{1});
    }
    seen.for_blocks(run, [&](KeyRange block, const MaskBlock* bits) {
      for (i64 j = block.first - first; j < block.limit - first; ++j) {
        if (bits) hide(width, *bits, j - (block.first - first), W + j * width);
        recompute_weights(width, largest, inverse, D, factors + (drops ? j * width : 0), factor, W + j * width,
                          scaled_dS + j * width);
      }
    });
    if (sums.bias) bias.add_gradient(Scores<T>{scaled_dS, keys, width, width}, rows, at.begin, first, sums.bias);
    const Mat<const T> scaled_dS_T(scaled_dS, keys, rows, width), W_T(W, keys, rows, width);
    if (sums.dQ)
      gemm_in_task<T>(scaled_dS_T, K.mat(keys, s.d_k), {sums.dQ + at.begin * s.d_k, rows, s.d_k}, Trans::a, true);
    if (pass.out.kv) {
      gemm_in_task<T>(scaled_dS_T, Q.mat(rows, s.d_k), pass.out.K(s, at.head).from(first).mat(keys, s.d_k), Trans::none,
                      true);
      gemm_in_task<T>(W_T, dO.mat(rows, s.d_v), pass.out.V(s, at.head).from(first).mat(keys, s.d_v), Trans::none, true);
    }
  }

  // dQ of a tile of queries: the sum of the dQ of all parts.
  template <class T> void add_parts(const Backward<T>& pass, const Queries& at) const {
    const HeadMatrix<T> dQ = pass.out.Q(s, at.head).from(at.begin);
    if (pass.q_is_new) clear_rows(dQ, at.rows(), s.d_k);
    for (i64 c = 0; c < pass.parts; ++c) {
      const T* sum = pass.sums + ((head_index(at.head) * pass.parts + c) * s.n + at.begin) * s.d_k;
      for (i64 i = 0; i < at.rows(); ++i) add_to(s.d_k, sum + i * s.d_k, dQ.data + i * dQ.stride);
    }
  }
};

}  // namespace

Variable tiled_attention(const Variable& qkv, const HeadSizes& heads, const Mask& mask,
                         const AttentionWeightOptions& options, TileSizes tile) {
  const TiledAttention operation{packed_heads_of(heads, mask, options), tile, {}, {}};
  const Variable& bias = options.bias;
  return bias.defined() ? apply(operation, qkv, Variable(), bias) : apply(operation, qkv);
}

Variable tiled_attention(const Variable& q, const Variable& kv, const HeadSizes& heads, const Mask& mask,
                         const AttentionWeightOptions& options, TileSizes tile) {
  const TiledAttention operation{packed_heads_of(heads, mask, options), tile, {}, {}};
  const Variable& bias = options.bias;
  return bias.defined() ? apply(operation, q, kv, bias) : apply(operation, q, kv);
}

}  // namespace orrery
