// Chapter 7. GptConfig: the numbers that say which GPT, checked, named, counted, and as text.
//
//                  vocabulary  d_model  h   N   max_len     parameters
//   nanogpt                65      128   4   4       64        804,096   the recipe for a CPU in nanoGPT's README
//   gpt2               50,257      768  12  12    1,024    124,439,808   Radford et al. 2019, table 2
//   gpt2-medium        50,257    1,024  16  24    1,024    354,823,168
//   gpt2-large         50,257    1,280  20  36    1,024    774,030,080
//   gpt2-xl            50,257    1,600  25  48    1,024  1,557,611,200
//   gpt3               50,257   12,288  96  96    2,048  174,604,259,328   Brown et al. 2020, table 2.1
// d_ff is 4 d_model everywhere. GPT-2's counts are those of its published weights (the paper's own, 117 to 1542
// million, were miscounted, as its authors' repository says). GPT-3's weights have never been published: its count
// follows from the sizes in its table, which rounds it to 175.0 billion. (GPT-3's layers alternate dense attention with
// "locally banded sparse attention patterns", section 2.1, which have no parameters of their own; here all are dense.)
// Serves: nn/models/gpt.h
#pragma once

#include "nn/models/layer_options.h"

namespace orrery::nn {

struct GptConfig {
  i64 vocab_size = 0;
  LayerOptions layer{.d_model = 768, .num_heads = 12, .d_ff = 3072};
  i64 num_layers = 12;
  i64 max_len = 1024;  ///< positions that have an embedding; a longer sequence is an error
  bool tied = true;    ///< the token embedding is the head's weight too

  /// Errors, naming the field, if some value is out of range or two do not fit.
  void validate() const;
  /// `layer` with nothing left open: as in GPT-2, GELU with tanh (nanoGPT's models have the exact GELU), and dropout on
  /// attention weights but not inside the feed-forward network. Whatever `layer` says, a GPT's layers normalise first,
  /// and its weights start from N(0, 0.02^2).
  LayerOptions layers() const;
  /// How many numbers the model learns, without building it; 2^53 if they are more.
  i64 parameter_count() const;
  /// Equal models: what one leaves open may be what the other says.
  friend bool operator==(const GptConfig& a, const GptConfig& b);
};

/// The models of the table above, by name. An error names those there are.
GptConfig gpt_preset(const std::string& name);
std::vector<std::string> gpt_preset_names();

/// Every field as JSON, for a file's metadata; and back, where absent fields keep their defaults.
/// Errors: text that is no JSON object, unknown fields, values of a wrong type, what `validate` refuses.
std::string to_json(const GptConfig& config);
GptConfig gpt_config(const std::string& json);
/// What a published model's config.json says, as Hugging Face writes it for a GPT-2; fields without a counterpart there
/// keep their defaults, and so does dropout. Errors of `operation`, naming the field: a text that is no JSON object, or
/// one that has no n_head, n_layer, n_embd, n_positions or vocab_size; values of a wrong type; what no Gpt computes.
GptConfig published_gpt_config(const std::string& json, const std::string& operation);
/// True for what `to_json` made of a GptConfig; false for another model's configuration. Errors: text that is no JSON
/// object.
bool is_gpt_config(const std::string& json);

}  // namespace orrery::nn
