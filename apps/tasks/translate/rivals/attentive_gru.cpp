// Chapter 7. AttentiveGru: its parts, and its formulas step by step.
#include "apps/tasks/translate/rivals/attentive_gru.h"

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "core/tensor_ops.h"
#include "nn/layers/padding.h"

namespace orrery::translate {
namespace {

// h_t from the state before, h [B, H], and the two sums that its gates add up (apps/tasks/translate/rivals/gru.h),
// [B, 3 H] each: a of the input and the context, b of h.
Variable gru_step(const Variable& a, const Variable& b, const Variable& h) {
  const auto [a_r, a_z, a_n] = split3(a, 1);
  const auto [b_r, b_z, b_n] = split3(b, 1);
  const Variable r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n);
  return (1.0 - z) * n + z * h;
}

}  // namespace

AttentiveGru::AttentiveGru(const AttentiveGruSizes& s, Rng& rng, nn::Init init)
    : input(s.in, 3 * s.H, rng, {.init = init}),
      context(s.M, 3 * s.H, rng, {.bias = false, .init = init}),
      recurrent(s.H, 3 * s.H, rng, {.init = init}),
      query(s.H, s.A, rng, {.bias = false, .init = init}),
      key(s.M, s.A, rng, {.init = init}),
      v(parameter(nn::initial_weight(init, 1, s.A, rng).reshape({s.A}))) {}

double AttentiveGru::parameter_count(const AttentiveGruSizes& s) {
  const nn::LinearOptions plain, no_bias{.bias = false};
  return nn::Linear::parameter_count(s.in, 3 * s.H, plain) + nn::Linear::parameter_count(s.M, 3 * s.H, no_bias) +
         nn::Linear::parameter_count(s.H, 3 * s.H, plain) + nn::Linear::parameter_count(s.H, s.A, no_bias) +
         nn::Linear::parameter_count(s.M, s.A, plain) + static_cast<double>(s.A);
}

AttentiveGruResult AttentiveGru::operator()(const Variable& x, const Variable& s0, const Variable& memory,
                                            const Mask& mask, Tensor* weights) const {
  const Variable harmless = nn::with_harmless_padding(memory, mask);
  return (*this)(x, s0, harmless, key(harmless), mask, weights);
}

AttentiveGruResult AttentiveGru::operator()(const Variable& x, const Variable& s0, const Variable& memory,
                                            const Variable& keys, const Mask& mask, Tensor* weights) const {
  // The fused operation has no bias for queries and none for contexts.
  const auto fits = [](const nn::Linear& map) { return map.is_plain() && !map.bias.defined(); };
  if (!recurrent.is_plain() || !fits(query) || !fits(context)) return composed(x, s0, memory, keys, mask, weights);
  return attentive_gru(input(x), s0, keys, memory, {recurrent.weight, recurrent.bias, query.weight, v, context.weight},
                       mask, weights);
}

AttentiveGruResult AttentiveGru::composed(const Variable& x, const Variable& s0, const Variable& given_memory,
                                          const Variable& given_keys, const Mask& mask, Tensor* weights) const {
  const Variable memory = nn::with_harmless_padding(given_memory, mask),
                 keys = nn::with_harmless_padding(given_keys, mask);
  const auto [B, S, A] = dims<3>(keys.value(), "keys");
  const i64 steps = dims<3>(x.value(), "x")[1], M = memory.size(2);
  const Mask padding = mask.padding_only();  // as in the fused operation
  const Variable gates = input(x), column = reshape(v, {A, 1});
  std::vector<Variable> states, contexts;
  std::vector<Tensor> seen;
  Variable s = s0;
  for (i64 t = 0; t < steps; ++t) {
    const Variable scores = matmul(tanh(reshape(query(s), {B, 1, A}) + keys), column);
    const Variable w = reshape(masked_softmax(reshape(scores, {B, 1, 1, S}), padding), {B, 1, S});
    const Variable c = matmul(w, memory);
    s = gru_step(reshape(slice(gates, 1, t, t + 1) + context(c), {B, gates.size(2)}), recurrent(s), s);
    states.push_back(reshape(s, {B, 1, s0.size(1)}));
    contexts.push_back(c);
    seen.push_back(w.value());
  }
  if (states.empty()) {
    states.push_back(constant(zeros({B, 0, s0.size(1)}, s0.dtype())));
    contexts.push_back(constant(zeros({B, 0, M}, s0.dtype())));
    seen.push_back(zeros({B, 0, S}, s0.dtype()));
  }
  if (weights) *weights = concat(seen, 1);
  return {concat(states, 1), concat(contexts, 1)};
}

void AttentiveGru::visit(nn::Visitor& visitor) {
  visitor("input", input);
  visitor("context", context);
  visitor("recurrent", recurrent);
  visitor("query", query);
  visitor("key", key);
  visitor("v", v);
}

}  // namespace orrery::translate
