// Chapter 9. The configurations for measuring speed: the same models and batches as for other frameworks.
//
// Two kinds: encoder-decoders, and GPTs, which have no encoder. All are trained in the same way
// (apps/measure/bench/training.h). One table lists the differences, in this order: size of the vocabulary, d_model,
// heads, layers, d_ff, the shape of a batch, dropout.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/tasks/lm/training.h"
#include "nn/models/transformer.h"

namespace orrery {

/// One row of the table. Source and target have vocabularies of the same size, but each has its own embedding. A GPT
/// has `num_decoder_layers` layers and sequences of `target_length`; its encoder layers and source length are 0.
struct BenchConfig {
  std::string name;
  i64 vocab_size;
  i64 d_model, num_heads, num_encoder_layers, num_decoder_layers, d_ff;
  i64 batch, source_length, target_length;
  double dropout;
  std::string what;  ///< the source of the configuration, for the help text

  bool is_gpt() const { return num_encoder_layers == 0; }
  /// `asked`, or the configuration's own probability if `asked` is below 0.
  double dropout_or_own(double asked) const { return asked < 0 ? dropout : asked; }

  i64 d_head() const { return d_model / num_heads; }
  i64 source_tokens() const { return batch * source_length; }
  i64 target_tokens() const { return batch * target_length; }
  /// The number of tokens in a training step, with padding: the tokens of "tokens per second".
  i64 tokens_per_step() const { return source_tokens() + target_tokens(); }
  /// torch.nn.Transformer with two embeddings, sinusoidal positions and a generator. It has a norm after each sub-layer
  /// and after both stacks, biases everywhere, and `dropout` on embeddings, attention weights, inner activations and
  /// sub-layers.
  nn::TransformerConfig transformer(double dropout) const;
  /// GPT-2 with exact GELU and as many positions as the batch is long. It has biases everywhere, a tied head, and
  /// `dropout` on embeddings, attention weights and sub-layers.
  LanguageModelConfig gpt(double dropout) const;
};

/// The configuration with another batch, another length of all sequences or another d_model (d_ff changes in
/// proportion); 0 leaves it as it is. Its name then shows this: "base[B=8,T=64]". Wrong usage: a width that is not a
/// multiple of the heads.
BenchConfig scaled(BenchConfig config, i64 batch, i64 length, i64 width);

/// Every configuration.
std::span<const BenchConfig> bench_configs();
/// Their names.
std::vector<std::string> bench_config_names();
/// The configuration of this name. The error for an unknown name lists all names.
const BenchConfig& bench_config(const std::string& name);

}  // namespace orrery
