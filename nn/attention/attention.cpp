// Chapter 6. MultiHeadAttention: project, cut into heads, attend, join, project.
//
// Read next: nn/positions/positional_encoding.h
#include "nn/attention/attention.h"

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/layout.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery::nn {
namespace {

// [B, n, h d] to [B, h, n, d]
Variable split_heads(const Variable& x, i64 h) {
  return permute(reshape(x, {x.size(0), x.size(1), h, x.size(2) / h}), {0, 2, 1, 3});
}

// [B, h, n, d] to [B, n, h d]
Variable join_heads(const Variable& x) {
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

// A bias by distance has two axes. Only the composed form can add one for each pair of positions.
bool by_packed_products(const Variable& bias) { return !bias.defined() || bias.shape().rank() == 2; }

// A bias as `cached_attention` takes it: by distance as it is, any other for all scores, [B or 1, h or 1, n, m].
Tensor bias_with_cache(const Tensor& bias, i64 h, i64 n, i64 m) {
  if (!bias.defined() || bias.rank() == 2) return bias;
  if (bias.rank() == 4 && bias.size(2) == n && bias.size(3) == m) return bias;
  return broadcast_to(bias, {bias.rank() == 4 ? bias.size(0) : 1, h, n, m});
}

// No gradient flows through a cache.
void check_nothing_recorded() {
  check(!gradients_are_recorded(), "attention", "a cache is for generation: nothing may be recorded (NoGradient)");
}

// The size of a head: as given, or d_model divided evenly among the heads.
i64 head_size(i64 given, i64 d_model, i64 num_heads) {
  check(num_heads > 0, "attention", "num_heads must be positive, not ", num_heads);
  if (given > 0) return given;
  check(given == 0, "attention", "d_k and d_v must be positive, or 0 for d_model / num_heads, not ", given);
  check(d_model % num_heads == 0, "attention", "d_model (", d_model, ") is not a multiple of num_heads (", num_heads,
        "); give d_k and d_v");
  return d_model / num_heads;
}

}  // namespace

Variable Attention::cross_attention(const Variable&, const Variable&, const Mask&, Pass&) const {
  fail("attention", type_name(*this), " has no cross-attention");
}
AttentionState Attention::state(i64, i64, Dtype) const {
  fail("attention", type_name(*this), " does not generate: it has no state");
}
AttentionState Attention::memory_state(const Variable&, const Mask&) const {
  fail("attention", type_name(*this), " has no cross-attention to generate with");
}
Variable Attention::next(const Variable&, AttentionState&) const {
  fail("attention", type_name(*this), " does not generate: it has no state");
}

Tensor chosen_rows(const Tensor& x, std::span<const i64> chosen) {
  check(!chosen.empty(), "chosen rows", "at least one must be chosen");
  Tensor rows = Tensor::empty(x.shape().with(0, std::ssize(chosen)), x.dtype());
  for (size_t i = 0; i < chosen.size(); ++i) {
    check(chosen[i] >= 0 && chosen[i] < x.size(0), "chosen rows", "there is no row ", chosen[i], " of ", x.size(0));
    Tensor to = rows.rows(static_cast<i64>(i), static_cast<i64>(i) + 1);
    copy_into(to, x.rows(chosen[i], chosen[i] + 1));
  }
  return rows;
}

MultiHeadAttention::MultiHeadAttention(i64 d_model, i64 num_heads, Rng& rng, const AttentionOptions& options)
    : in_proj(parameter(initial_weight(options.init,
                                       num_heads * (2 * head_size(options.d_k, d_model, num_heads) +
                                                    head_size(options.d_v, d_model, num_heads)),
                                       d_model, rng)),
              {}),
      out_proj(num_heads * head_size(options.d_v, d_model, num_heads), d_model, rng,
               {.bias = false, .init = options.init}),
      num_heads(num_heads),
      d_k(head_size(options.d_k, d_model, num_heads)),
      d_v(head_size(options.d_v, d_model, num_heads)),
      dropout(Dropout(options.dropout).p) {  // Dropout checks it
  if (!options.bias) return;
  in_proj.bias = parameter(initial_constant({in_proj.weight.size(0)}, 0, rng));
  out_proj.bias = parameter(initial_constant({d_model}, 0, rng));
}

MultiHeadAttention::MultiHeadAttention(Linear in_proj, Linear out_proj, i64 num_heads, i64 d_k, i64 d_v, double dropout)
    : in_proj(std::move(in_proj)),
      out_proj(std::move(out_proj)),
      num_heads(num_heads),
      d_k(d_k),
      d_v(d_v),
      dropout(dropout) {}

MultiHeadAttention MultiHeadAttention::clone() const {
  MultiHeadAttention copy(in_proj.clone(), out_proj.clone(), num_heads, d_k, d_v, dropout);
  copy.own_mask = own_mask;
  copy.query_key_map = query_key_map.clone();
  copy.score_bias = score_bias.clone();
  return copy;
}

void MultiHeadAttention::visit(Visitor& v) {
  v("in_proj", in_proj);
  v("out_proj", out_proj);
  v("query_key_map", query_key_map);
  v("score_bias", score_bias);
}

// The composed form, which can also record the weights.
Variable MultiHeadAttention::attend(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask,
                                    const AttentionWeightOptions& options, Pass& pass) const {
  const Variable q = split_heads(Q, num_heads), k = split_heads(K, num_heads), v = split_heads(V, num_heads);
  const AttentionResult result = attention(q, k, v, mask, options);
  if (pass.recorder) pass.recorder->all.push_back({this, result.weights.value()});
  return join_heads(result.output);
}

// Q, K and V side by side, as in_proj returns them, with Q and K changed by `query_key_map`. The first row is position
// `first_position`.
Variable MultiHeadAttention::positioned(const Variable& qkv, i64 first_position) const {
  if (!query_key_map) return qkv;
  const auto [B, n, columns] = dims<3>(qkv.value(), "attention");
  const Shape split_shape{B, n, num_heads, d_k}, joined_shape{B, n, num_heads * d_k};
  const auto [Q, kv] = split(qkv, num_heads * d_k, -1);
  const auto [K, V] = split(kv, num_heads * d_k, -1);
  return concat({reshape(query_key_map->queries(reshape(Q, split_shape), first_position), joined_shape),
                 reshape(query_key_map->keys(reshape(K, split_shape), first_position), joined_shape), V},
                -1);
}

Variable MultiHeadAttention::bias_of(i64 n, i64 m, Dtype dtype) const {
  return score_bias ? score_bias(n, m, dtype) : Variable();
}

// The positions of two different sequences cannot be compared.
void MultiHeadAttention::check_cross() const {
  check(!query_key_map && !score_bias && own_mask.allows_all(), "attention",
        "query_key_map, score_bias and own_mask are for self-attention only; this is cross-attention");
}

Variable MultiHeadAttention::self_attention(const Variable& x, const Mask& mask, Pass& pass) const {
  const double p = pass.train ? dropout : 0;
  const Draw draw = pass.draw_for(p);
  const Mask seen = mask & own_mask;
  const Variable qkv = positioned(in_proj(with_harmless_padding(x, own_mask)), 0);
  const Variable bias = bias_of(x.size(1), x.size(1), qkv.dtype());
  if (!pass.recorder && by_packed_products(bias))
    return out_proj(packed_attention(qkv, heads(), seen, {.bias = bias, .p = p, .draw = draw}));
  const auto [Q, kv] = split(qkv, num_heads * d_k, -1);
  const auto [K, V] = split(kv, num_heads * d_k, -1);
  return out_proj(attend(Q, K, V, seen, {.bias = bias, .p = p, .draw = draw}, pass));
}

Variable MultiHeadAttention::cross_attention(const Variable& x, const Variable& memory, const Mask& mask,
                                             Pass& pass) const {
  check_cross();
  const double p = pass.train ? dropout : 0;
  const Draw draw = pass.draw_for(p);
  const i64 q_rows = num_heads * d_k;
  const Variable Q = in_proj(x, {0, q_rows});
  const Variable kv = in_proj(memory, key_value_rows());
  if (!pass.recorder) return out_proj(packed_attention(Q, kv, heads(), mask, {.p = p, .draw = draw}));
  const auto [K, V] = split(kv, q_rows, -1);
  return out_proj(attend(Q, K, V, mask, {.p = p, .draw = draw}, pass));
}

KeyValueCache MultiHeadAttention::empty_cache(i64 B, i64 capacity, Dtype dtype) const {
  return key_value_cache(B, num_heads, capacity, d_k, d_v, dtype);
}

void MultiHeadAttention::check_cache(const KeyValueCache& cache) const {
  const i64 h = cache.keys.size(1), keys = cache.keys.size(3), values = cache.values.size(3);
  check(h == num_heads && keys == d_k && values == d_v, "key/value cache", "has ", h, " heads of ", keys, " and ",
        values, ", this attention ", num_heads, " of ", d_k, " and ", d_v);
}

AttentionState MultiHeadAttention::state(i64 B, i64 capacity, Dtype dtype) const {
  return empty_cache(B, capacity, dtype);
}

AttentionState MultiHeadAttention::memory_state(const Variable& memory, const Mask& mask) const {
  check_nothing_recorded();
  check_cross();
  MemoryCache result{empty_cache(memory.size(0), memory.size(1), memory.dtype()), mask};
  result.append(in_proj(memory, key_value_rows()).value());
  return result;
}

Variable MultiHeadAttention::next(const Variable& x, AttentionState& state) const {
  check_nothing_recorded();
  if (const auto* memory = state.get_if<MemoryCache>()) {
    check_cache(*memory);
    const Variable Q = in_proj(x, {0, num_heads * d_k});
    return out_proj(constant(cached_attention(Q.value(), *memory, memory->mask)));
  }
  auto& cache = state.as<KeyValueCache>();
  check_cache(cache);
  const i64 n = x.size(1);
  const bool all_are_new = cache.length == 0 && n > 1;
  const Variable qkv = positioned(in_proj(x), cache.length);
  cache.append(qkv.value());
  const Variable bias = bias_of(n, cache.length, qkv.dtype());
  const Mask seen = Mask::causal() & own_mask;
  if (all_are_new && by_packed_products(bias)) return out_proj(packed_attention(qkv, heads(), seen, {.bias = bias}));
  const Tensor fitting = bias_with_cache(bias.value(), num_heads, n, cache.length);
  return out_proj(constant(cached_attention(qkv.value(), cache, seen, fitting)));
}

}  // namespace orrery::nn
