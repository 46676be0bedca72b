// Chapter 9. The configurations that speed is measured on: the same models and batches as for other frameworks.
//
// Two kinds: encoder-decoders, and GPTs, which are those without an encoder. All are trained alike (bench_training.h).
// One table says what differs, in this order: tokens of the vocabulary, d_model, heads, layers, d_ff, the shape of a
// batch, dropout.
// Serves: core/machine/parallel.h
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/models/gpt_config.h"
#include "nn/models/transformer_config.h"

namespace orrery {

/// One row of the table. Source and target have vocabularies of one size, but embeddings of their own.
struct BenchConfig {
  std::string name;
  i64 vocab_size;
  i64 d_model, num_heads, num_encoder_layers, num_decoder_layers, d_ff;
  i64 batch, source_length, target_length;
  double dropout;
  std::string what;  ///< where it comes from, for the help text

  bool is_gpt() const { return num_encoder_layers == 0; }
  /// The probability asked for, or its own if that is below 0.
  double dropout_or_own(double asked) const { return asked < 0 ? dropout : asked; }

  i64 d_head() const { return d_model / num_heads; }
  i64 source_tokens() const { return batch * source_length; }
  i64 target_tokens() const { return batch * target_length; }
  /// What a training step reads, padding included: the tokens of "tokens per second".
  i64 tokens_per_step() const { return source_tokens() + target_tokens(); }
  /// torch.nn.Transformer with two embeddings, sinusoidal positions and a generator: norms after each sub-layer and
  /// after both stacks, biases everywhere, `dropout` on embeddings, attention weights, inner activations, sub-layers.
  nn::TransformerConfig transformer(double dropout) const;
  /// GPT-2 with exact GELU, and as many positions as the batch is long: biases everywhere, a tied head, `dropout` on
  /// embeddings, attention weights and sub-layers.
  nn::GptConfig gpt(double dropout) const;
};

/// The configuration with another batch, length of all sequences or d_model (d_ff in proportion); 0 keeps its own. Its
/// name then tells what it is: "base[B=8,T=64]". Errors: a width that the heads do not divide.
BenchConfig scaled(BenchConfig config, i64 batch, i64 length, i64 width);

/// Every configuration.
std::span<const BenchConfig> bench_configs();
/// Their names.
std::vector<std::string> bench_config_names();
/// The one of this name. An error names those there are.
const BenchConfig& bench_config(const std::string& name);

}  // namespace orrery
