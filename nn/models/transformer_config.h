// Chapter 7. TransformerConfig: the sizes and options of a Transformer, checked, and as JSON text.
//
// Paper, table 3:           N  d_model  d_ff  h  d_k  d_v  P_drop  parameters
//                    base   6      512  2048  8   64   64     0.1     65 * 10^6
//                    big    6     1024  4096  16  64   64     0.3    213 * 10^6
// with one vocabulary of about 37,000 tokens for both languages (section 5.1) and shared embeddings (section 3.4).
// Exact counts of these presets with 37,000 tokens, biases everywhere: 63,119,496 and 214,282,376.
#pragma once

#include "nn/models/layer_options.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn {

struct TransformerConfig {
  i64 src_vocab_size = 0, tgt_vocab_size = 0;
  LayerOptions layer{};
  i64 num_encoder_layers = 6, num_decoder_layers = 6;
  bool final_norm = false;        ///< one more norm after each stack, as torch.nn.Transformer always has
  i64 max_len = 1024;             ///< positions; a longer sequence is an error
  i32 pad_id = 0;                 ///< trailing tokens of this id are padding; -1: there is none
  bool share_embeddings = false;  ///< one matrix for both embeddings and the generator (section 3.4)
  bool generator_bias = true;     ///< a bias of the logits; there is none either if the layers have no biases
  Positions positions = Positions::sinusoidal;

  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// `layer` with the model's defaults in all fields without a value.
  LayerOptions layers() const;
  /// The options of the generator.
  LinearOptions generator() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  /// True if both describe the same model. A field without a value equals its default.
  friend bool operator==(const TransformerConfig& a, const TransformerConfig& b);
};

/// The paper's models, with one vocabulary for both languages, and dropout as in section 5.4, not inside sub-layers.
TransformerConfig base(i64 vocab_size);
TransformerConfig big(i64 vocab_size);
/// 4 + 4 layers of 128: for Multi30k's 29,000 pairs ("Good for Misconceived Reasons", Wu et al. 2021).
/// As there, the logits have no bias.
TransformerConfig tiny(i64 vocab_size);

/// Every field as JSON, for a file's metadata; and back, where absent fields keep their defaults.
/// Errors: text that is not a JSON object, unknown fields, values of a wrong type, and those of `validate`.
std::string to_json(const TransformerConfig& config);
TransformerConfig transformer_config(const std::string& json);

}  // namespace orrery::nn
