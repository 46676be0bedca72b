// Chapter 9. A tiny model for experiments: tokens in, scores for a token out at every position.
//
//   x = sqrt(d_model) embedding[ids] + positions;   logits = generator(encoder(x, mask))
// With a causal mask it is a language model, with the mask that allows everything an encoder. The mask, the positions
// and every part of a layer can be chosen, so that each claim changes exactly one thing.
#pragma once

#include "core/mask.h"
#include "nn/layers/embedding.h"
#include "nn/models/stack.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::claims {

/// Where the model gets the order of its tokens from.
enum class Order { none, sinusoidal, learned };

struct SequenceModelConfig {
  i64 symbols = 0;
  nn::LayerOptions layer{.d_model = 32, .num_heads = 4, .d_ff = 64, .dropout = 0};
  i64 num_layers = 2;
  i64 max_len = 0;
  Order order = Order::sinusoidal;
  Mask mask = Mask::causal();
};

struct SequenceModel : nn::Module {
  Mask mask;
  nn::Embedding embedding;
  std::optional<nn::PositionalEncoding> positions;
  nn::Encoder encoder;
  nn::Linear generator;

  SequenceModel(const SequenceModelConfig& config, Rng& rng);
  /// ids i32 [B, T] to logits [B, T, symbols].
  Variable operator()(const Tensor& ids, nn::Pass& pass) const;
  void visit(nn::Visitor& v) override;
};

}  // namespace orrery::claims
