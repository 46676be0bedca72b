// Chapter 7. GptConfig: the sizes and options of a GPT, checked, counted, and as JSON text.
//
//                  vocabulary  d_model  h   N   max_len     parameters
//   nanogpt                65      128   4   4       64        804,096   the recipe for a CPU in nanoGPT's README
//   distilgpt2         50,257      768  12   6    1,024   81,912,576   Sanh et al. 2019, "DistilBERT", of GPT-2
//   gpt2               50,257      768  12  12    1,024    124,439,808   Radford et al. 2019, table 2
//   gpt2-medium        50,257    1,024  16  24    1,024    354,823,168
//   gpt2-large         50,257    1,280  20  36    1,024    774,030,080
//   gpt2-xl            50,257    1,600  25  48    1,024  1,557,611,200
//   gpt3               50,257   12,288  96  96    2,048  174,604,259,328   Brown et al. 2020, table 2.1
// d_ff is 4 d_model everywhere. GPT-2's counts are those of its published weights (the paper's own, 117 to 1542
// million, were miscounted, as its authors' repository says). GPT-3's weights have never been published: its count
// follows from the sizes in its table, which rounds it to 175.0 billion. (GPT-3's layers alternate dense attention with
// "locally banded sparse attention patterns", section 2.1, which have no parameters of their own; here all are dense.)
#pragma once

#include "nn/models/layer_options.h"

namespace orrery::nn {

struct GptConfig {
  i64 vocab_size = 0;
  LayerOptions layer{.d_model = 768, .num_heads = 12, .d_ff = 3072};
  i64 num_layers = 12;
  i64 max_len = 1024;           ///< positions that have an embedding; a longer sequence is an error
  bool tied = true;             ///< the head uses the token embedding as its weight
  bool rotary = false;          ///< turn queries and keys, besides the position embedding (nn/attention/rotary.h)
  bool query_key_norm = false;  ///< scores are cosines times a learned number (nn/attention/query_key_norm.h)

  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// `layer` with GPT-2's defaults in all fields without a value: GELU with tanh (nanoGPT's models have the exact
  /// GELU), and dropout on attention weights but not inside the feed-forward network. A GPT's layers always normalise
  /// first, and its weights start from N(0, 0.02^2): `norm_first` is not read, and another `init` is an error.
  LayerOptions layers() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  /// True if both describe the same model. A field without a value equals its default.
  friend bool operator==(const GptConfig& a, const GptConfig& b);
};

/// The models of the table above, by name. The error for an unknown name lists all names.
GptConfig gpt_preset(const std::string& name);
std::vector<std::string> gpt_preset_names();

/// Every field as JSON, for a file's metadata; and back, where absent fields keep their defaults.
/// Errors: text that is not a JSON object, unknown fields, values of a wrong type, and those of `validate`.
std::string to_json(const GptConfig& config);
GptConfig gpt_config(const std::string& json);
/// The configuration in a published model's config.json, as Hugging Face writes it for GPT-2. Fields without a
/// counterpart there keep their defaults, and so does dropout. Errors of `operation`, naming the field: text that is
/// not a JSON object; a missing n_head, n_layer, n_embd, n_positions or vocab_size; values of a wrong type; options
/// that a Gpt does not have; sizes out of range, under the names that GptConfig has.
GptConfig published_gpt_config(const std::string& json, const std::string& operation);
/// The same file for a model of ours, for GPT2LMHeadModel. Errors: those of `validate`; an option that GPT-2 does not
/// have, such as rotary positions. Dropout inside the feed-forward network is not in it.
std::string published_json(const GptConfig& config);
/// True if `to_json` made the text from a GptConfig; false for another model's configuration. Errors: text that is not
/// a JSON object.
bool is_gpt_config(const std::string& json);

}  // namespace orrery::nn
