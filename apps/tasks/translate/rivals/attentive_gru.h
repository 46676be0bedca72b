// Chapter 7. AttentiveGru: a unit that looks at the source before each step, the first attention in translation.
//
// Bahdanau, Cho, Bengio 2015 ("Neural Machine Translation by Jointly Learning to Align and Translate"), section 3.1:
// "The decoder decides parts of the source sentence to pay attention to. By letting the decoder have an attention
// mechanism, we relieve the encoder from the burden of having to encode all information in the source sentence into a
// fixed-length vector."
//   e_tj = v . tanh(W_q s_{t-1} + W_k m_j + b_k)          additive attention: a small network scores each pair
//   c_t = sum_j softmax(e_t)_j m_j
//   s_t = gru([x_t ; c_t], s_{t-1})                       the gates of x_t and c_t are two linear maps, added up
// The Transformer keeps the weighted sum and drops the recurrence. Its scores are dot products. Paper, section 3.2.1:
// "While the two are similar in theoretical complexity, dot-product attention is much faster and more space-efficient
// in practice, since it can be implemented using highly optimized matrix multiplication code."
// Step t needs c_t, which needs s_{t-1}: training cannot compute all positions at once. If all linear maps are plain,
// one fused operation computes them (autograd/ops/fused/attentive_gru.cpp), otherwise one operation for each line.
// Shapes: x [B, T, in], s0 [B, H], memory m [B, S, M], keys [B, S, A]; states [B, T, H], contexts [B, T, M].
#pragma once

#include "autograd/ops/fused/attentive_gru.h"
#include "core/mask.h"
#include "nn/layers/linear.h"

namespace orrery::translate {

/// Sizes of an AttentiveGru.
struct AttentiveGruSizes {
  i64 in;  ///< of an input x_t
  i64 H;   ///< of a state s_t
  i64 M;   ///< of a row of the memory
  i64 A;   ///< of a query and a key
};

struct AttentiveGru : nn::Module {
  nn::Linear input;      // from in to 3 H gates
  nn::Linear context;    // from M to 3 H gates, without bias
  nn::Linear recurrent;  // from H to 3 H gates
  nn::Linear query;      // from H to A, without bias
  nn::Linear key;        // from M to A
  Variable v;            // [A]

  AttentiveGru(const AttentiveGruSizes& sizes, Rng& rng, nn::Init init = nn::Init::pytorch_linear);
  using nn::Module::parameter_count;
  /// The number of parameters of such a layer, counted without building it.
  static double parameter_count(const AttentiveGruSizes& sizes);

  /// States and contexts at all positions. Only the padding of `mask` is used: it is that of the memory. If `weights`
  /// is given, it receives the attention weights [B, T, S].
  AttentiveGruResult operator()(const Variable& x, const Variable& s0, const Variable& memory, const Mask& mask,
                                Tensor* weights = nullptr) const;
  /// The same with keys that `key` has computed before, for calls that share a memory.
  AttentiveGruResult operator()(const Variable& x, const Variable& s0, const Variable& memory, const Variable& keys,
                                const Mask& mask, Tensor* weights = nullptr) const;
  /// One operation for each line of the formulas, one step after another.
  AttentiveGruResult composed(const Variable& x, const Variable& s0, const Variable& memory, const Variable& keys,
                              const Mask& mask, Tensor* weights = nullptr) const;
  void visit(nn::Visitor& v) override;
};

}  // namespace orrery::translate
