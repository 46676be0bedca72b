// Chapter 8. Recurrent units written with operations of their own for each line of their formulas, one step at a time.
#pragma once

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery::small {

/// h_t from gates a and b [B, 3 H] and h = h_{t-1} [B, H].
inline Variable gru_step(const Variable& a, const Variable& b, const Variable& h) {
  const auto [a_r, a_z, a_n] = split3(a, 1);
  const auto [b_r, b_z, b_n] = split3(b, 1);
  const Variable r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n);
  return (1.0 - z) * n + z * h;
}

/// x [B, T, ...] at position t: [B, ...].
inline Variable at_position(const Variable& x, i64 t) { return reshape(slice(x, 1, t, t + 1), {x.size(0), x.size(2)}); }

inline Variable textbook_gru(const Variable& gates, const Variable& h0, const Variable& W, const Variable& b,
                             const Mask& mask, bool reverse) {
  const i64 B = gates.size(0), steps = gates.size(1);
  std::vector<Variable> states(static_cast<size_t>(steps));
  Variable h = h0;
  for (i64 s = 0; s < steps; ++s) {
    const i64 t = reverse ? steps - 1 - s : s;
    Tensor real = zeros({B, 1}, gates.dtype());
    for (i64 row = 0; row < B; ++row) real.set(row, t < mask.length(row, steps) ? 1 : 0);
    const Variable next = gru_step(at_position(gates, t), linear(h, W, b), h);
    h = next * constant(real) + h * (1.0 - constant(real));
    states[static_cast<size_t>(t)] = reshape(h, {B, 1, h.size(1)});
  }
  return concat(states, 1);
}

/// States and contexts of a unit that attends before each step, side by side: [B, T, H + M].
inline Variable textbook_attentive_gru(const Variable& gates, const Variable& s0, const Variable& keys,
                                       const Variable& memory, const AttentiveGruParameters& p, const Mask& mask) {
  const i64 B = gates.size(0), steps = gates.size(1), S = keys.size(1), A = keys.size(2);
  std::vector<Variable> results;
  Variable s = s0;
  for (i64 t = 0; t < steps; ++t) {
    const Variable q = reshape(linear(s, p.W_query, {}), {B, 1, A});
    const Variable scores = matmul(tanh(q + keys), reshape(p.v, {A, 1}));
    const Variable weights = reshape(masked_softmax(reshape(scores, {B, 1, 1, S}), mask), {B, 1, S});
    const Variable c = reshape(matmul(weights, memory), {B, memory.size(2)});
    s = gru_step(at_position(gates, t) + linear(c, p.W_context, {}), linear(s, p.W, p.b), s);
    results.push_back(reshape(concat({s, c}, 1), {B, 1, -1}));
  }
  return concat(results, 1);
}

}  // namespace orrery::small
