// Chapter 6. MultiHeadAttention: project, cut into heads, attend, join, project.
//
// Read next: nn/positions/positional_encoding.h
#include "nn/attention/attention.h"

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

// x [B, m, d_model] whose padding does no harm. No query sees it, so that its keys and values get the gradient 0; but 0
// times NaN or infinity is NaN in the gradient of W. Where there is such a thing, padding is set to 0.
Variable with_harmless_padding(const Variable& x, const Mask& mask) {
  if (!mask.has_padding() || padding_is_moderate(x.value(), mask)) return x;
  const auto [B, m, d_model] = dims<3>(x.value(), "attention");
  return reshape(zero_padding(reshape(x, {B, 1, m, d_model}), mask), {B, m, d_model});
}

// No gradient flows through a cache.
void check_nothing_recorded() {
  check(!gradients_are_recorded(), "attention", "a cache is for generation: nothing may be recorded (NoGradient)");
}

// The size of a head's part: as given, or d_model shared out evenly.
i64 head_size(i64 given, i64 d_model, i64 num_heads) {
  check(num_heads > 0, "attention", "num_heads must be positive, not ", num_heads);
  if (given > 0) return given;
  check(given == 0, "attention", "d_k and d_v must be positive, or 0 for d_model / num_heads, not ", given);
  check(d_model % num_heads == 0, "attention", "d_model (", d_model, ") is not a multiple of num_heads (", num_heads,
        "); give d_k and d_v");
  return d_model / num_heads;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(i64 d_model, i64 num_heads, Rng& rng, const AttentionOptions& options)
    : in_proj_weight(parameter(initial_weight(
          options.init,
          num_heads * (2 * head_size(options.d_k, d_model, num_heads) + head_size(options.d_v, d_model, num_heads)),
          d_model, rng))),
      out_proj(num_heads * head_size(options.d_v, d_model, num_heads), d_model, rng,
               {.bias = false, .init = options.init}),
      num_heads(num_heads),
      d_k(head_size(options.d_k, d_model, num_heads)),
      d_v(head_size(options.d_v, d_model, num_heads)),
      dropout(Dropout(options.dropout).p) {
  if (!options.bias) return;
  in_proj_bias = parameter(zeros({in_proj_weight.size(0)}));
  out_proj.bias = parameter(zeros({d_model}));
}

double MultiHeadAttention::count(i64 d_model, i64 num_heads, const AttentionOptions& options) {
  const double d = static_cast<double>(d_model), h = static_cast<double>(num_heads);
  const double d_k = options.d_k > 0 ? static_cast<double>(options.d_k) : d / h,
               d_v = options.d_v > 0 ? static_cast<double>(options.d_v) : d / h;
  const double rows = h * (2 * d_k + d_v);
  return rows * d + h * d_v * d + (options.bias ? rows + d : 0);
}

// The composed form, which has the weights to show.
Variable MultiHeadAttention::attend(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask, double p,
                                    const Draw& draw, Tensor* weights) const {
  const AttentionResult heads =
      attention(split_heads(Q, num_heads), split_heads(K, num_heads), split_heads(V, num_heads), mask, p, draw);
  *weights = heads.weights.value();
  return join_heads(heads.output);
}

Variable MultiHeadAttention::operator()(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights) const {
  const double p = pass.train ? dropout : 0;
  const Draw draw = pass.draw_for(p);
  const Variable qkv = linear(with_harmless_padding(x, mask), in_proj_weight, in_proj_bias);
  if (!weights) return out_proj(packed_attention(qkv, num_heads, d_k, d_v, mask, p, draw));
  const auto [Q, kv] = split(qkv, num_heads * d_k, -1);
  const auto [K, V] = split(kv, num_heads * d_k, -1);
  return out_proj(attend(Q, K, V, mask, p, draw, weights));
}

Variable MultiHeadAttention::operator()(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass,
                                        Tensor* weights) const {
  const double p = pass.train ? dropout : 0;
  const Draw draw = pass.draw_for(p);
  const i64 q_rows = num_heads * d_k;
  const Variable Q = linear(x, in_proj_weight, in_proj_bias, {0, q_rows});
  const Variable kv =
      linear(with_harmless_padding(memory, mask), in_proj_weight, in_proj_bias, {q_rows, in_proj_weight.size(0)});
  if (!weights) return out_proj(packed_attention(Q, kv, num_heads, d_k, d_v, mask, p, draw));
  const auto [K, V] = split(kv, q_rows, -1);
  return out_proj(attend(Q, K, V, mask, p, draw, weights));
}

KeyValueCache MultiHeadAttention::cache(i64 B, i64 capacity) const {
  return key_value_cache(B, num_heads, capacity, d_k, d_v, in_proj_weight.dtype());
}

void MultiHeadAttention::check_cache(const KeyValueCache& cache) const {
  const i64 h = cache.keys.size(1), keys = cache.keys.size(3), values = cache.values.size(3);
  check(h == num_heads && keys == d_k && values == d_v, "key/value cache", "has ", h, " heads of ", keys, " and ",
        values, ", this attention ", num_heads, " of ", d_k, " and ", d_v);
}

Variable MultiHeadAttention::next(const Variable& x, KeyValueCache& cache) const {
  check_nothing_recorded();
  check_cache(cache);
  const Variable qkv = linear(x, in_proj_weight, in_proj_bias);
  const bool all_are_new = cache.length == 0 && x.size(1) > 1;
  cache.append(qkv.value());
  return out_proj(all_are_new ? packed_attention(qkv, num_heads, d_k, d_v, Mask::causal())
                              : constant(cached_attention(qkv.value(), cache, Mask::causal())));
}

KeyValueCache MultiHeadAttention::cache_of(const Variable& memory) const {
  check_nothing_recorded();
  KeyValueCache result = cache(memory.size(0), memory.size(1));
  result.append(linear(memory, in_proj_weight, in_proj_bias, {num_heads * d_k, in_proj_weight.size(0)}).value());
  return result;
}

Variable MultiHeadAttention::over(const Variable& x, const KeyValueCache& memory, const Mask& mask) const {
  check_nothing_recorded();
  check_cache(memory);
  const Variable Q = linear(x, in_proj_weight, in_proj_bias, {0, num_heads * d_k});
  return out_proj(constant(cached_attention(Q.value(), memory, mask)));
}

}  // namespace orrery::nn
