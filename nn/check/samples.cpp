// Chapter 7. The table of proofs for layers: every module, in every form it has.
//
// Each row: the module, what is special, the inputs' shapes, how it is built, how it is called.
// Serves: autograd/check/proof.h
#include "nn/check/samples.h"

#include "core/mask.h"
#include "nn/attention/attention.h"
#include "nn/check/sample_rows.h"
#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn {
namespace {

Sample linear(std::string variant, LinearOptions options, Shape x) {
  return module_sample(
      "Linear", std::move(variant), {x}, [=](Rng& rng) { return Linear(4, 3, rng, options); },
      [](const Linear& layer, const Inputs& in) { return layer(in[0]); });
}

Sample embedding_rows(std::string variant, Tensor tokens) {
  return module_sample(
      "Embedding", std::move(variant), {}, [](Rng& rng) { return Embedding(5, 3, rng); },
      [=](const Embedding& layer, const Inputs&) { return layer(tokens); });
}

Sample norm(std::string variant, LayerNormOptions options) {
  return module_sample(
      "LayerNorm", std::move(variant), {{2, 3, 5}}, [=](Rng&) { return LayerNorm(5, options); },
      [](const LayerNorm& layer, const Inputs& in) { return layer(in[0]); });
}

Sample dropped(std::string variant, bool train) {
  return module_sample(
      "Dropout", std::move(variant), {{3, 11}}, [](Rng&) { return Dropout(0.4); },
      [=](const Dropout& layer, const Inputs& in, Pass& training) {
        Pass inference = Pass::inference();
        return layer(in[0], train ? training : inference);
      });
}

Sample feed_forward(std::string variant, FeedForwardOptions options) {
  return module_sample(
      "FeedForward", std::move(variant), {{2, 3, 4}}, [=](Rng& rng) { return FeedForward(4, 7, rng, options); },
      [](const FeedForward& layer, const Inputs& in, Pass& pass) { return layer(in[0], pass); });
}

Sample positions(std::string variant, Positions kind, i64 d_model) {
  return module_sample(
      "PositionalEncoding", std::move(variant), {{2, 3, d_model}},
      [=](Rng& rng) { return PositionalEncoding(kind, 4, d_model, rng); },
      [](const PositionalEncoding& layer, const Inputs& in) { return layer(in[0]); });
}

Sample self_attention(std::string variant, Mask mask, AttentionOptions options, SampleNotes notes = {}) {
  return module_sample(
      "MultiHeadAttention", std::move(variant), {{2, 3, 4}},
      [=](Rng& rng) { return MultiHeadAttention(4, 2, rng, options); },
      [=](const MultiHeadAttention& layer, const Inputs& in, Pass& pass) { return layer(in[0], mask, pass); },
      std::move(notes));
}

Sample cross_attention(std::string variant, Mask mask, AttentionOptions options, i64 m = 4, SampleNotes notes = {}) {
  return module_sample(
      "MultiHeadAttention", std::move(variant), {{2, 3, 4}, {2, m, 4}},
      [=](Rng& rng) { return MultiHeadAttention(4, 2, rng, options); },
      [=](const MultiHeadAttention& layer, const Inputs& in, Pass& pass) { return layer(in[0], in[1], mask, pass); },
      std::move(notes));
}

std::vector<DeclaredZero> all_but_output_bias() {
  const std::string reason = "no query may see a key, so attention is 0 whatever the inputs";
  return {{"input 0", reason},
          {"input 1", reason},
          {"in_proj_weight", reason},
          {"in_proj_bias", reason},
          {"out_proj.weight", reason}};
}

std::vector<Sample> layer_samples() {
  const Mask padding = Mask::padding(ids({2}, {3, 2}));
  const Mask nothing = Mask::padding(ids({2}, {0, 0}));
  const Mask one_row_blind = Mask::allow(ids({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0}));
  const Mask each_head = Mask::allow(ids({1, 2, 3, 4}, {1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1,  //
                                                        1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1}));
  return {
      linear("", {}, {2, 3, 4}),
      linear("no bias", {.bias = false}, {3, 4}),
      linear("pytorch_linear", {.init = Init::pytorch_linear}, {2, 4}),
      embedding_rows("repeated ids", ids({2, 3}, {4, 0, 2, 2, 2, 1})),
      norm("root of variance + eps", {}),
      norm("std + eps", {.eps = 1e-3, .form = LayerNormForm::std_plus_eps}),
      norm("unbiased std + eps", {.eps = 1e-3, .form = LayerNormForm::unbiased_std_plus_eps}),
      norm("no bias", {.bias = false}),
      dropped("training", true),
      dropped("inference", false),
      feed_forward("relu", {}),
      feed_forward("gelu, dropout, no bias", {.dropout = 0.3, .activation = Activation::gelu, .bias = false}),
      feed_forward("gelu with tanh", {.activation = Activation::gelu_tanh}),
      positions("sinusoidal", Positions::sinusoidal, 4),
      positions("sinusoidal, odd d_model", Positions::sinusoidal, 5),
      positions("learned", Positions::learned, 4),
      self_attention("self", {}, {}),
      self_attention("self, causal", Mask::causal(), {}),
      self_attention("self, causal and padding", Mask::causal() & padding, {}),
      self_attention("self, a row that sees nothing", one_row_blind, {}),
      self_attention("self, no bias", {}, {.bias = false}),
      self_attention("self, free d_k and d_v", {}, {.d_k = 3, .d_v = 1}),
      self_attention("self, dropout", {}, {.dropout = 0.4}),
      cross_attention("cross", {}, {}),
      cross_attention("cross, padding", padding, {}),
      cross_attention("cross, a mask for each head", each_head, {}),
      cross_attention("cross, free d_k and d_v, no bias", {}, {.d_k = 1, .d_v = 3, .bias = false}),
      cross_attention("cross, dropout", {}, {.dropout = 0.4}),
      cross_attention("cross, one key", {}, {}, 1, {.zeros = {{"input 0", "softmax over one key is 1 for any query"}}}),
      cross_attention("cross, nothing to see", nothing, {}, 4, {.zeros = all_but_output_bias()}),
  };
}

}  // namespace

const std::vector<Sample>& module_samples() {
  static const std::vector<Sample> all = [] {
    std::vector<Sample> rows = layer_samples(), models = model_samples();
    rows.insert(rows.end(), models.begin(), models.end());
    return rows;
  }();
  return all;
}

}  // namespace orrery::nn
