// Chapter 8. A gated recurrent unit that attends to a memory before each step, over all positions, as one operation.
//
//   q_t = W_q s_{t-1}                                                  b_t = W s_{t-1} + b
//   e_tj = v . tanh(q_t + k_j)                                         u_tj = tanh(q_t + k_j)
//   w_t = softmax(e_t)
//   c_t = sum_j w_tj m_j
//   s_t = gru(a_t + W_c c_t, b_t, s_{t-1})                             as in autograd/ops/fused/gru.cpp
// This is the decoder of Bahdanau, Cho, Bengio 2015 ("Neural Machine Translation by Jointly Learning to Align and
// Translate", sections 3.1 and A.1.2). The keys k_j = W_k m_j are the same at all positions, and the gates a_t come
// from tokens that are known in training, so only what depends on s_{t-1} is left to be done step by step. Backward
// gets ds_t and dc_t from outside, da_t and db_t from the unit, and then:
//   dc_t += W_c^T da_t                       dm_j += w_tj dc_t        dw_tj = dc_t . m_j
//   de_tj = w_tj (dw_tj - sum_l w_tl dw_tl)                           dv += de_tj u_tj
//   dk_j += de_tj v (1 - u_tj^2)             dq_t = sum_j de_tj v (1 - u_tj^2)
//   ds_{t-1} gets ds_t z_t + db_t W + dq_t W_q
// The gradients of the matrices are one product each over all positions.
// Memory: 4 H + A + S numbers for each position of each row, beside the results; u_tj is computed again.
// Shapes: gates a [B, T, 3 H], s0 [B, H], keys [B, S, A], memory m [B, S, M]; parameters: AttentiveGruParameters.
#include "autograd/ops/fused/attentive_gru.h"

#include "autograd/apply.h"
#include "autograd/ops/fused/gru_rows.h"
#include "autograd/ops/fused/linear/linear_rows.h"
#include "autograd/ops/softmax_rows.h"
#include "core/mask.h"

namespace orrery {
using namespace kernels;
namespace {

struct Sizes {
  i64 B, steps, H, S, A, M;
  i64 recurrent() const { return 3 * H + A; }  // numbers of b_t and q_t
  i64 kept() const { return recurrent() + H; }
};

// What a row of the batch attends to: its first m keys [m, A] and their memory [m, M]. v has A numbers.
template <class T>
struct Attended {
  i64 m;
  const T *keys, *v, *memory;
};
template <class T>
struct AttendedGradient {
  T *keys, *v, *memory;
};

// The weights of the first m keys, and what they read; `weights` has S numbers.
template <class T>
void attend_row(const Sizes& sizes, const Attended<T>& in, const T* q, T* weights, T* context) {
  const i64 m = in.m;
  const T *keys = in.keys, *v = in.v, *memory = in.memory;
  for (i64 j = 0; j < m; ++j) {
    const T* k = keys + j * sizes.A;
    weights[j] = static_cast<T>(chunked_sum<T>(sizes.A, [=](i64 i) { return v[i] * math::tanh(q[i] + k[i]); }));
  }
  softmax_row(weights, weights, m);
  std::fill(weights + m, weights + sizes.S, T{0});
  std::fill_n(context, sizes.M, T{0});
  for (i64 j = 0; j < m; ++j) {
    const T weight = weights[j], *from = memory + j * sizes.M;
#pragma omp simd
    for (i64 i = 0; i < sizes.M; ++i) context[i] += weight * from[i];
  }
}

// Adds to the gradients of keys, v and memory, and turns q into dq. `scratch` has A + S numbers.
template <class T>
void attend_derivative_row(const Sizes& sizes, const Attended<T>& in, const T* weights, const T* dc, T* q,
                           const AttendedGradient<T>& gradient, T* scratch) {
  const i64 m = in.m;
  const T *keys = in.keys, *v = in.v, *memory = in.memory;
  T *dkeys = gradient.keys, *dv = gradient.v, *dmemory = gradient.memory;
  T *dq = scratch, *de = scratch + sizes.A;
  for (i64 j = 0; j < m; ++j) {
    const T weight = weights[j], *row = memory + j * sizes.M;
    T* d = dmemory + j * sizes.M;
    de[j] = static_cast<T>(chunked_sum<T>(sizes.M, [=](i64 i) { return dc[i] * row[i]; }));
#pragma omp simd
    for (i64 i = 0; i < sizes.M; ++i) d[i] += weight * dc[i];
  }
  softmax_derivative_row(weights, de, de, m);
  std::fill_n(dq, sizes.A, T{0});
  for (i64 j = 0; j < m; ++j) {
    const T d = de[j], *k = keys + j * sizes.A;
    T* dk = dkeys + j * sizes.A;
#pragma omp simd
    for (i64 i = 0; i < sizes.A; ++i) {
      const T u = math::tanh(q[i] + k[i]), inner = d * v[i] * (T{1} - u * u);
      dv[i] += d * u;
      dk[i] += inner;
      dq[i] += inner;
    }
  }
  std::copy_n(dq, sizes.A, q);
}

struct AttentiveGru {
  static constexpr std::string_view name = "attentive_gru";
  enum Input : size_t { of_gates, of_s0, of_keys, of_memory, of_W, of_b, of_W_query, of_v, of_W_context };
  using Outputs = std::array<Tensor, 2>;  // states, contexts

  Mask mask;
  bool recorded;       // backward may follow, so every step has to be kept
  Tensor* weights_to;  // the caller's; null if they are not wanted
  Sizes sizes{};
  Saved s0{}, keys{}, memory{}, W{}, W_query{}, v{}, W_context{}, states{}, contexts{};
  Saved weights{};  // [B, T, S]
  Tensor kept{};    // [B, T, 3 H + A + H]: r, z, b_n; q; n. This operation's own: backward overwrites it

  Outputs forward(const Tensor& gates, const Tensor& first, const Tensor& k, const Tensor& m, const Tensor& weight,
                  const Tensor& b, const Tensor& query_weight, const Tensor& score, const Tensor& context_weight) {
    prepare(gates, first, k, m, weight, b, query_weight, score, context_weight);
    const Dtype dtype = gates.dtype();
    const i64 slots = recorded ? sizes.steps : 1;
    kept = Tensor::empty({sizes.B, slots, sizes.kept()}, dtype);
    Tensor all_weights = Tensor::empty({sizes.B, sizes.steps, sizes.S}, dtype);
    Tensor all_states = Tensor::empty({sizes.B, sizes.steps, sizes.H}, dtype),
           read = Tensor::empty({sizes.B, sizes.steps, sizes.M}, dtype);
    Tensor a = Tensor::empty({sizes.B, 3 * sizes.H}, dtype);
    dispatch_floating(dtype, name, [&](auto t) {
      using T = decltype(t);
      T *to = all_states.write<T>(), *w = all_weights.write<T>(), *c = read.write<T>(), *all_kept = kept.write<T>();
      for (i64 step = 0; step < sizes.steps; ++step) {
        const Mat<const T> before =
            step == 0 ? Mat<const T>(first.data<T>(), sizes.B, sizes.H)
                      : Mat<const T>(to + (step - 1) * sizes.H, sizes.B, sizes.H, sizes.steps * sizes.H);
        const Mat<T> keep(all_kept + (recorded ? step : 0) * sizes.kept(), sizes.B, sizes.recurrent(),
                          slots * sizes.kept());
        linear_rows<T>(before, whole<T>(W), data_or_null<T>(b), Mat<T>(keep.data, sizes.B, 3 * sizes.H, keep.stride));
        const Mat<T> queries(keep.data + 3 * sizes.H, sizes.B, sizes.A, keep.stride);
        linear_rows<T>(before, whole<T>(W_query), nullptr, queries);
        attend<T>(step, queries, w, c);
        const Mat<T> sums(a.write<T>(), sizes.B, 3 * sizes.H);
        add_contexts<T>(step, gates.data<T>(), c, sums);
        for_rows(sizes.B, gru_unit_cost * sizes.H, [=, this](i64 row) {
          T* b_row = keep.data + row * keep.stride;
          gru_row(sizes.H, sums.data + row * sums.stride, b_row, b_row + sizes.recurrent(),
                  before.data + row * before.stride, to + (row * sizes.steps + step) * sizes.H);
        });
      }
    });
    if (weights_to) *weights_to = all_weights;
    weights = all_weights;
    states = all_states;
    contexts = read;
    return {all_states, read};
  }

  void backward(const Outputs& dy, Grads& dx) {
    const Dtype dtype = weights.get().dtype();
    Tensor da = Tensor::empty({sizes.B, sizes.steps, 3 * sizes.H}, dtype),
           before = Tensor::empty({sizes.B, sizes.steps, sizes.H}, dtype);
    Tensor ds = zeros({sizes.B, sizes.H}, dtype), dc = Tensor::empty({sizes.B, sizes.M}, dtype);
    Tensor dkeys = zeros({sizes.B, sizes.S, sizes.A}, dtype), dmemory = zeros({sizes.B, sizes.S, sizes.M}, dtype),
           dv = zeros({sizes.B, sizes.A}, dtype);
    Tensor scratch = Tensor::empty({sizes.B, sizes.A + sizes.S}, dtype);
    dispatch_floating(dtype, name, [&](auto t) {
      using T = decltype(t);
      T *a = da.write<T>(), *all_kept = kept.write<T>(), *d = ds.write<T>(), *h = before.write<T>();
      for (i64 step = sizes.steps - 1; step >= 0; --step) {
        through_unit(step, data_or_null<T>(dy[0]), h, all_kept, a, d);
        const Mat<T> read(dc.write<T>(), sizes.B, sizes.M);
        copy_rows(step, data_or_null<T>(dy[1]), read);
        gemm<T>(Mat<const T>(a + step * 3 * sizes.H, sizes.B, 3 * sizes.H, sizes.steps * 3 * sizes.H),
                whole<T>(W_context), read, Trans::none, true);
        through_attention(step, read.data, all_kept, dkeys.write<T>(), dv.write<T>(), dmemory.write<T>(),
                          scratch.write<T>());
        const i64 stride = sizes.steps * sizes.kept();
        const Mat<T> ds_before(d, sizes.B, sizes.H);
        gemm<T>(Mat<const T>(all_kept + step * sizes.kept(), sizes.B, 3 * sizes.H, stride), whole<T>(W), ds_before,
                Trans::none, true);
        gemm<T>(Mat<const T>(all_kept + step * sizes.kept() + 3 * sizes.H, sizes.B, sizes.A, stride), whole<T>(W_query),
                ds_before, Trans::none, true);
      }
      const i64 rows = sizes.B * sizes.steps;
      const Mat<const T> previous(h, rows, sizes.H), db(all_kept, rows, 3 * sizes.H, sizes.kept()),
          dq(all_kept + 3 * sizes.H, rows, sizes.A, sizes.kept());
      add_weight_gradient(dx, of_W, db, previous);
      add_weight_gradient(dx, of_W_query, dq, previous);
      add_weight_gradient(dx, of_W_context, Mat<const T>(a, rows, 3 * sizes.H), whole<T>(contexts));
      if (dx.wanted(of_b)) dx.add(of_b, column_sums(db));
    });
    if (dx.wanted(of_v)) dx.add(of_v, sum(dv, {0}));
    if (dx.wanted(of_gates)) dx.add(of_gates, std::move(da));
    if (dx.wanted(of_s0)) dx.add(of_s0, std::move(ds));
    if (dx.wanted(of_keys)) dx.add(of_keys, std::move(dkeys));
    if (dx.wanted(of_memory)) dx.add(of_memory, std::move(dmemory));
  }

 private:
  // For loops over rows: the work of one row's attention in elements. A tanh counts as 8 products and sums.
  i64 attention_cost() const { return sizes.S * (8 * sizes.A + sizes.M); }

  // A tensor as one matrix, its leading axes folded into the rows.
  template <class T>
  static Mat<const T> whole(const Tensor& x) {
    return {x.data<T>(), x.shape().without_last().count(), x.size(-1)};
  }

  // The weights and the contexts of one step.
  template <class T>
  void attend(i64 step, const Mat<T>& queries, T* w, T* c) const {
    const T *k = keys.get().data<T>(), *m = memory.get().data<T>(), *score = v.get().data<T>();
    for_rows(sizes.B, attention_cost(), [=, this](i64 row) {
      const i64 place = row * sizes.steps + step, of_row = row * sizes.S;
      const Attended<T> in{mask.length(row, sizes.S), k + of_row * sizes.A, score, m + of_row * sizes.M};
      attend_row(sizes, in, queries.data + row * queries.stride, w + place * sizes.S, c + place * sizes.M);
    });
  }

  // sums = a_t + W_c c_t
  template <class T>
  void add_contexts(i64 step, const T* gates, const T* c, const Mat<T>& sums) const {
    const auto fill = [=, this](const Tile& tile) {
      for (i64 row = tile.row; row < tile.row_end; ++row) {
        const T* from = gates + (row * sizes.steps + step) * 3 * sizes.H;
        std::copy(from + tile.column, from + tile.column_end, sums.data + row * sums.stride + tile.column);
      }
    };
    gemm<T>(Mat<const T>(c + step * sizes.M, sizes.B, sizes.M, sizes.steps * sizes.M), whole<T>(W_context), sums,
            Trans::b, fill, nullptr);
  }

  // Row by row, the numbers of one step: x [B, T, M] at `step`, or 0 if there is no x.
  template <class T>
  void copy_rows(i64 step, const T* x, const Mat<T>& to) const {
    for_rows(sizes.B, sizes.M, [=, this](i64 row) {
      T* out = to.data + row * sizes.M;
      if (x)
        std::copy_n(x + (row * sizes.steps + step) * sizes.M, sizes.M, out);
      else
        std::fill_n(out, sizes.M, T{0});
    });
  }

  // Backward through the unit: adds dy to ds, writes da and s_{t-1}, and turns what forward kept into db.
  template <class T>
  void through_unit(i64 step, const T* dy, T* before, T* all_kept, T* da, T* ds) const {
    const T *first = s0.get().data<T>(), *after = states.get().data<T>();
    for_rows(sizes.B, gru_unit_cost * sizes.H, [=, this](i64 row) {
      const i64 place = row * sizes.steps + step;
      T *b = all_kept + place * sizes.kept(), *h = before + place * sizes.H, *d = ds + row * sizes.H;
      std::copy_n(step == 0 ? first + row * sizes.H : after + (place - 1) * sizes.H, sizes.H, h);
      if (dy) add_to(sizes.H, dy + place * sizes.H, d);
      gru_derivative_row(sizes.H, h, b + sizes.recurrent(), b, da + place * 3 * sizes.H, d);
    });
  }

  // Backward through attention: adds to the gradients of keys, v and memory, and turns the kept q into dq.
  template <class T>
  void through_attention(i64 step, const T* dc, T* all_kept, T* dkeys, T* dv, T* dmemory, T* scratch) const {
    const T *k = keys.get().data<T>(), *m = memory.get().data<T>(), *score = v.get().data<T>();
    const T* w = weights.get().data<T>();
    for_rows(sizes.B, attention_cost(), [=, this](i64 row) {
      const i64 place = row * sizes.steps + step, of_row = row * sizes.S;
      const AttendedGradient<T> gradient{dkeys + of_row * sizes.A, dv + row * sizes.A, dmemory + of_row * sizes.M};
      const Attended<T> in{mask.length(row, sizes.S), k + of_row * sizes.A, score, m + of_row * sizes.M};
      attend_derivative_row(sizes, in, w + place * sizes.S, dc + row * sizes.M,
                            all_kept + place * sizes.kept() + 3 * sizes.H, gradient,
                            scratch + row * (sizes.A + sizes.S));
    });
  }

  // Checks and saves the inputs, and sets the sizes.
  void prepare(const Tensor& gates, const Tensor& first, const Tensor& k, const Tensor& m, const Tensor& weight,
               const Tensor& b, const Tensor& query_weight, const Tensor& score, const Tensor& context_weight) {
    check(gates.rank() == 3, name, "the gates need shape [B, T, 3 H], have ", gates.shape());
    check(k.rank() == 3, name, "the keys of the memory need shape [B, S, A], have ", k.shape());
    check(m.rank() == 3, name, "the memory needs shape [B, S, M], has ", m.shape());
    const i64 columns = gates.size(2);
    sizes = {gates.size(0), gates.size(1), columns / 3, k.size(1), k.size(2), m.size(2)};
    const auto needs = [](const Tensor& x, std::string_view what, const Shape& shape) {
      check(x.shape() == shape, name, what, " needs shape ", shape, ", has ", x.shape());
    };
    check(columns % 3 == 0, name, "the gates need 3 H columns, have ", columns);
    needs(first, "the first state", {sizes.B, sizes.H});
    needs(k, "the keys of the memory", {sizes.B, sizes.S, sizes.A});
    needs(m, "the memory", {sizes.B, sizes.S, sizes.M});
    needs(weight, "the weight", {3 * sizes.H, sizes.H});
    if (b.defined()) needs(b, "the bias", {3 * sizes.H});
    needs(query_weight, "the weight of queries", {sizes.A, sizes.H});
    needs(score, "the weight of scores", {sizes.A});
    needs(context_weight, "the weight of contexts", {3 * sizes.H, sizes.M});
    mask.check_padding_fits(sizes.B, sizes.S);
    s0 = first;
    keys = k;
    memory = m;
    W = weight;
    W_query = query_weight;
    v = score;
    W_context = context_weight;
  }
};

}  // namespace

AttentiveGruResult attentive_gru(const Variable& gates, const Variable& s0, const Variable& keys,
                                 const Variable& memory, const AttentiveGruParameters& p, const Mask& mask,
                                 Tensor* weights) {
  const bool recorded =
      tape::records(std::array{&gates, &s0, &keys, &memory, &p.W, &p.b, &p.W_query, &p.v, &p.W_context});
  auto [states, contexts] =
      apply(AttentiveGru{mask, recorded, weights}, gates, s0, keys, memory, p.W, p.b, p.W_query, p.v, p.W_context);
  return {std::move(states), std::move(contexts)};
}

}  // namespace orrery
