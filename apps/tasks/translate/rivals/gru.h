// Chapter 7. Gru: a state that is carried from position to position, as in translators before the Transformer.
//
// Paper, section 1: "Recurrent models typically factor computation along the symbol positions of the input and output
// sequences. Aligning the positions to steps in computation time, they generate a sequence of hidden states h_t, as a
// function of the previous hidden state h_{t-1} and the input for position t." Two gates decide what of the state
// stays. Cho et al. 2014, section 2.3: "when the reset gate is close to 0, the hidden state is forced to ignore the
// previous hidden state", and "the update gate controls how much information from the previous hidden state will carry
// over to the current hidden state".
//   r_t = sigmoid(W_ir x_t + b_ir + W_hr h_{t-1} + b_hr)      reset gate
//   z_t = sigmoid(W_iz x_t + b_iz + W_hz h_{t-1} + b_hz)      update gate
//   n_t = tanh(W_in x_t + b_in + r_t (W_hn h_{t-1} + b_hn))
//   h_t = (1 - z_t) n_t + z_t h_{t-1}
// Names, order and formulas are those of torch.nn.GRU with one layer. In a row's padding the state stays as it is, so
// h_T is the state after the last real position, whatever the padding holds.
// Shapes: x [B, T, in], states [B, T, H]; of both directions, [B, T, 2 H].
#pragma once

#include <cmath>

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/fused/gru.h"
#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"
#include "nn/layers/linear.h"
#include "nn/layers/padding.h"
#include "nn/module.h"

namespace orrery::translate {

struct Gru : nn::Module {
  Variable weight_ih, weight_hh;  // [3 H, in], [3 H, H]: gates r, z, n, one above the other
  Variable bias_ih, bias_hh;      // [3 H]
  bool reverse;                   // from the last position to the first

  /// All parameters start from U(-1/sqrt(H), 1/sqrt(H)), as in PyTorch.
  Gru(i64 in, i64 H, Rng& rng, bool reverse = false) : reverse(reverse) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(H));
    const auto drawn = [&](const Shape& shape) { return parameter(rand_uniform(shape, -bound, bound, rng)); };
    weight_ih = drawn({3 * H, in});
    weight_hh = drawn({3 * H, H});
    bias_ih = drawn({3 * H});
    bias_hh = drawn({3 * H});
  }
  using nn::Module::parameter_count;
  /// The number of parameters of such a layer, counted without building it.
  static double parameter_count(i64 in, i64 H) {
    const double units = static_cast<double>(H);
    return nn::Linear::parameter_count(static_cast<double>(in), 3 * units) +
           nn::Linear::parameter_count(units, 3 * units);
  }
  /// The states at all positions. Only the padding of `mask` is used. The first state h0 [B, H] is 0 if undefined.
  Variable operator()(const Variable& x, const Mask& mask = {}, const Variable& h0 = {}) const {
    const Variable gates = linear(nn::with_harmless_padding(x, mask), weight_ih, bias_ih);
    return gru(gates, h0, weight_hh, bias_hh, mask, reverse);
  }
  /// The last state that `states` [B, T, H] came to: [B, H]. Errors: no position.
  Variable last(const Variable& states) const {
    const auto [B, T, H] = dims<3>(states.value(), "states");
    check(T > 0, "gru", "no position, so no last state");
    return reshape(slice(states, 1, reverse ? 0 : T - 1, reverse ? 1 : T), {B, H});
  }
  void visit(nn::Visitor& v) override {
    const std::string end = reverse ? "_l0_reverse" : "_l0";
    v("weight_ih" + end, weight_ih);
    v("weight_hh" + end, weight_hh);
    v("bias_ih" + end, bias_ih);
    v("bias_hh" + end, bias_hh);
  }
};

/// Two GRUs, one for each direction. Their parameters have the names of one bidirectional torch.nn.GRU. Bahdanau et al.
/// 2015, section 3.2: "we would like the annotation of each word to summarize not only the preceding words, but also
/// the following words."
struct BidirectionalGru : nn::Module {
  Gru forward, backward;

  BidirectionalGru(i64 in, i64 H, Rng& rng) : forward(in, H, rng), backward(in, H, rng, true) {}
  using nn::Module::parameter_count;
  static double parameter_count(i64 in, i64 H) { return 2 * Gru::parameter_count(in, H); }

  /// What both directions return.
  struct Result {
    Variable states;  ///< [B, T, 2 H]: at each position, forward beside backward
    Variable last;    ///< [B, 2 H]: forward after the row's last position, backward after its first
  };
  Result operator()(const Variable& x, const Mask& mask = {}) const {
    const Variable in = nn::with_harmless_padding(x, mask), ahead = forward(in, mask), back = backward(in, mask);
    return {concat({ahead, back}, 2), concat({forward.last(ahead), backward.last(back)}, 1)};
  }
  void visit(nn::Visitor& v) override {
    v.inlined(forward);
    v.inlined(backward);
  }
};

}  // namespace orrery::translate
