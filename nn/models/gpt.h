// Chapter 7. Gpt: a decoder without an encoder, from tokens to scores for the next token at every position at once.
//
// Without an encoder, the decoder needs no cross-attention. What remains is an encoder with a causal mask.
// Radford et al. 2019 ("GPT-2"), section 2.3: "Layer normalization was moved to the input of each sub-block, [...] and
// an additional layer normalization was added after the final self-attention block. A modified initialization which
// accounts for the accumulation on the residual path with model depth is used. We scale the weights of residual layers
// at initialization by a factor of 1/sqrt(N) where N is the number of residual layers."
//   x = dropout(token_embedding[ids] + position_embedding[0, 1, ...])
//   x = x + dropout(attention(norm(x)));   x = x + dropout(feed_forward(norm(x)))      in each layer
//   logits = norm(x) token_embedding^T                                                 the tied head
// Shapes: ids i32 [B, T], T <= max_len, x [B, T, d_model], logits [B, T, vocab_size]. Row t of the logits predicts
// token t + 1. Files have the names and the layout of GPT-2's published ones (nn/files/names.h).
// Models of known sizes:
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
// Read next: nn/models/gpt.cpp
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "nn/layers/embedding.h"
#include "nn/models/stack.h"

namespace orrery::nn {

struct GptConfig {
  i64 vocab_size = 0;
  LayerOptions layer{.d_model = 768, .num_heads = 12, .d_ff = 3072};
  i64 num_layers = 12;
  i64 max_len = 1024;           ///< positions that have an embedding; a longer sequence is an error
  bool tied = true;             ///< the head uses the token embedding as its weight
  bool rotary = false;          ///< turn queries and keys, besides the position embedding (nn/attention/rotary.h)
  bool query_key_norm = false;  ///< scores are cosines times a learned number (nn/attention/query_key_norm.h)

  /// From JSON text, where absent fields keep their defaults. Errors: text that is not a JSON object, unknown fields,
  /// values of a wrong type, and those of `validate`.
  static GptConfig of_json(const std::string& json);
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

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F> void for_each_field(GptConfig& config, F&& field) {
  field({"vocab_size", Rule::positive}, config.vocab_size);
  for_each_field(config.layer, field);
  field({"num_layers", Rule::positive, 96, "Layers"}, config.num_layers);
  field({"max_len", Rule::positive, 65536, "Tokens that the model sees at once"}, config.max_len);
  field({"tied"}, config.tied);
  field({"rotary", Rule::any, 1, "Turn queries and keys by angles of their positions, besides the position embedding"},
        config.rotary);
  field({"query_key_norm", Rule::any, 1, "Scores are cosines of queries and keys, times a learned number"},
        config.query_key_norm);
}

/// Every field as JSON, for a file's metadata.
std::string to_json(const GptConfig& config);
/// The models of the table above, by name. The error for an unknown name lists all names.
GptConfig gpt_preset(const std::string& name);
std::vector<std::string> gpt_preset_names();

struct Gpt : CausalModel {
  GptConfig config;
  Embedding token_embedding, position_embedding;
  LayerNorm final_norm;
  Linear lm_head;  // to vocab_size; in a tied model its weight is not defined, and the token embedding's is used
  Dropout dropout;

  /// Draws every weight from N(0, 0.02^2), except those that write to the residual connection. They are drawn from
  /// N(0, 0.02^2 / (2 num_layers)). Biases are 0. Errors: whatever `config.validate()` rejects.
  Gpt(const GptConfig& config, Rng& rng);

  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `ids`. The logits are
  /// computed in chunks and never stored as a whole. What follows the last label that counts is padding.
  Variable loss(const Tensor& ids, const Tensor& labels, Pass& pass, const CrossEntropyOptions& options = {}) const;

  i64 vocab_size() const override { return config.vocab_size; }
  i64 max_len() const override { return config.max_len; }
  Dtype dtype() const override { return token_embedding.weight.dtype(); }
  /// dropout(tokens + positions).
  Variable embed(const Tensor& ids, Pass& pass, i64 first_position = 0) const override;
  Variable normalized(const Variable& x) const override { return final_norm(x); }
  Variable head(const Variable& hidden) const override;

  Gpt clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(Visitor& v) override;
  std::string_view family() const override { return "gpt2"; }

 private:
  const Variable& classes() const { return lm_head.weight.defined() ? lm_head.weight : token_embedding.weight; }
};

}  // namespace orrery::nn
