// Chapter 7. The table of proofs for layers: every module, in every form it has.
//
// Each row: the module, what is special, the inputs' shapes, how it is built, how it is called.
#include "nn/check/samples.h"

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/reduce.h"
#include "core/mask.h"
#include "nn/attention/attention.h"
#include "nn/attention/copy.h"
#include "nn/attention/query_key_norm.h"
#include "nn/attention/rotary.h"
#include "nn/check/sample_rows.h"
#include "nn/layers/convolution.h"
#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/rms_norm.h"
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

Sample rms(std::string variant, Shape x) {
  const i64 D = x[-1];
  return module_sample(
      "RmsNorm", std::move(variant), {x}, [=](Rng&) { return RmsNorm(D); },
      [](const RmsNorm& layer, const Inputs& in) { return layer(in[0]); });
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

Sample convolution_layer(std::string variant, ConvolutionPadding padding, Mask mask) {
  return module_sample(
      "Convolution", std::move(variant), {{2, 3, 4}}, [=](Rng& rng) { return Convolution(4, 6, 3, padding, rng); },
      [=](const Convolution& layer, const Inputs& in) { return layer(in[0], mask); },
      {.padding = mask.has_padding() ? Padding{.places = {{"input 0", {3, 2}}}} : Padding{}});
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

Sample copying() {
  const Tensor source = ids({2, 4}, {3, 1, 3, 0, 4, 2, 0, 0}), target = ids({2, 3}, {1, 3, 1, 4, 1, 0});
  return module_sample(
      "Copy", "padding, a token that comes twice", {{2, 3, 4}, {2, 3, 5}, {2, 4, 4}},
      [](Rng& rng) { return Copy(4, rng); },
      [=, mask = lengths_3_and_2()](const Copy& layer, const Inputs& in) {
        return layer(in[0], in[1], layer.read(source, with_harmless_padding(in[2], mask), mask), target);
      },
      {.padding = {.places = {{"input 2", {3, 2}}}}});
}

// Parts that a user may put into a layer, each with a parameter of its own.

// x W^T + b + (x A^T) B^T
struct LowRank : LinearMap {
  Linear base;
  Variable A, B;  // [2, in], [out, 2]
  LowRank(Linear linear, Rng& rng)
      : base(std::move(linear)),
        A(parameter(randn({2, base.weight.size(1)}, rng))),
        B(parameter(randn({base.weight.size(0), 2}, rng))) {}
  Variable operator()(const Variable& x, RowRange rows) const override {
    return base(x, rows) + orrery::linear(orrery::linear(x, A, {}), B, {}, rows);
  }
  void visit(Visitor& v) override {
    v.inlined(base);
    v("lora_A", A);
    v("lora_B", B);
  }
};

// Q and K scaled, each position by its own factor.
struct ScaledPositions : QueryKeyMap {
  Variable scale;  // [4, 1, 1]
  explicit ScaledPositions(Rng& rng) : scale(parameter(randn({4, 1, 1}, rng))) {}
  Variable queries(const Variable& Q, i64 first_position) const override {
    return Q * slice(scale, 0, first_position, first_position + Q.size(1));
  }
  void visit(Visitor& v) override { v("scale", scale); }
};

// A learned bias, by distance or for each pair.
struct LearnedBias : ScoreBias {
  Variable bias;
  LearnedBias(const Shape& shape, Rng& rng) : bias(parameter(randn(shape, rng))) {}
  Variable operator()(i64, i64, Dtype) const override { return bias; }
  void visit(Visitor& v) override { v("bias", bias); }
};

Sample replaced_linear() {
  return module_sample(
      "Linear", "a map of one's own", {{2, 3, 4}}, [](Rng& rng) { return Linear(LowRank(Linear(4, 3, rng), rng)); },
      [](const Linear& layer, const Inputs& in) { return layer(in[0]); });
}

Sample replaced_feed_forward(std::string variant, FeedForwardOptions options) {
  return module_sample(
      "FeedForward", std::move(variant), {{2, 3, 4}},
      [=](Rng& rng) {
        FeedForward layer(4, 7, rng, options);
        layer.linear2 = LowRank(std::move(layer.linear2), rng);
        return layer;
      },
      [](const FeedForward& layer, const Inputs& in, Pass& pass) { return layer(in[0], pass); });
}

// change(layer, rng) replaces parts of the attention.
template <class Change>
Sample changed_attention(std::string variant, Mask mask, Change change, SampleNotes notes = {}) {
  return module_sample(
      "MultiHeadAttention", std::move(variant), {{2, 3, 4}},
      [=](Rng& rng) {
        MultiHeadAttention layer(4, 2, rng);
        change(layer, rng);
        return layer;
      },
      [=](const MultiHeadAttention& layer, const Inputs& in, Pass& pass) { return layer(in[0], mask, pass); },
      std::move(notes));
}

Sample cross_attention_of_own_maps() {
  return module_sample(
      "MultiHeadAttention", "cross, maps of one's own", {{2, 3, 4}, {2, 4, 4}},
      [](Rng& rng) {
        MultiHeadAttention layer(4, 2, rng);
        layer.in_proj = LowRank(std::move(layer.in_proj), rng);
        layer.out_proj = LowRank(std::move(layer.out_proj), rng);
        return layer;
      },
      [](const MultiHeadAttention& layer, const Inputs& in, Pass& pass) { return layer(in[0], in[1], {}, pass); });
}

std::vector<DeclaredZero> all_but_output_bias() {
  const std::string reason = "no query may see a key, so attention is 0 whatever the inputs";
  return {{"input 0", reason},
          {"input 1", reason},
          {"in_proj.weight", reason},
          {"in_proj.bias", reason},
          {"out_proj.weight", reason}};
}

// All but attention.
std::vector<Sample> plain_layers() {
  return {
      linear("", {}, {2, 3, 4}),
      linear("no bias", {.bias = false}, {3, 4}),
      linear("pytorch_linear", {.init = Init::pytorch_linear}, {2, 4}),
      replaced_linear(),
      embedding_rows("repeated ids", ids({2, 3}, {4, 0, 2, 2, 2, 1})),
      norm("root of variance + eps", {}),
      norm("std + eps", {.eps = 1e-3, .form = LayerNormForm::std_plus_eps}),
      norm("unbiased std + eps", {.eps = 1e-3, .form = LayerNormForm::unbiased_std_plus_eps}),
      norm("no bias", {.bias = false}),
      rms("", {2, 3, 5}),
      dropped("training", true),
      dropped("inference", false),
      feed_forward("relu", {}),
      feed_forward("gelu, dropout, no bias", {.dropout = 0.3, .activation = Activation::gelu, .bias = false}),
      feed_forward("gelu with tanh", {.activation = Activation::gelu_tanh}),
      replaced_feed_forward("a map of one's own, relu", {}),
      replaced_feed_forward("a map of one's own, gelu, dropout", {.dropout = 0.3, .activation = Activation::gelu}),
      positions("sinusoidal", Positions::sinusoidal, 4),
      positions("sinusoidal, odd d_model", Positions::sinusoidal, 5),
      positions("learned", Positions::learned, 4),
      convolution_layer("same, padding", ConvolutionPadding::same, lengths_3_and_2()),
      convolution_layer("causal", ConvolutionPadding::causal, Mask()),
  };
}

std::vector<Sample> self_attentions() {
  const Mask padded = Mask::causal() & lengths_3_and_2();
  const SampleNotes of_padded{.padding = padding_of_x()};
  const Mask one_row_blind = Mask::allow(ids({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0}));
  return {
      self_attention("self", {}, {}),
      self_attention("self, causal", Mask::causal(), {}),
      self_attention("self, causal and padding", padded, {}, of_padded),
      self_attention("self, a row that sees nothing", one_row_blind, {}),
      self_attention("self, no bias", {}, {.bias = false}),
      self_attention("self, free d_k and d_v", {}, {.d_k = 3, .d_v = 1}),
      self_attention("self, dropout", {}, {.dropout = 0.4}),
      changed_attention("self, positions of Q and K", Mask::causal(),
                        [](MultiHeadAttention& layer, Rng& rng) { layer.query_key_map = ScaledPositions(rng); }),
      changed_attention("self, rotary positions", Mask::causal(),
                        [](MultiHeadAttention& layer, Rng&) { layer.query_key_map = Rotary(3, 2); }),
      changed_attention("self, norms of rotary Q and K", Mask::causal(),
                        [](MultiHeadAttention& layer, Rng&) { layer.query_key_map = QueryKeyNorm(3, Rotary(3, 2)); }),
      changed_attention("self, bias by distance in a window", {},
                        [](MultiHeadAttention& layer, Rng& rng) {
                          layer.score_bias = LearnedBias({2, 5}, rng);
                          layer.own_mask = Mask::window(1, 2);
                        }),
      changed_attention(
          "self, bias for each pair", padded,
          [](MultiHeadAttention& layer, Rng& rng) {
            layer.score_bias = LearnedBias({1, 2, 3, 3}, rng);
          },
          of_padded),
  };
}

std::vector<Sample> cross_attentions() {
  const Mask nothing = Mask::padding(ids({2}, {0, 0}));
  const Mask each_head = Mask::allow(ids({1, 2, 3, 4}, {1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1,  //
                                                        1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1}));
  return {
      cross_attention_of_own_maps(),
      cross_attention("cross", {}, {}),
      cross_attention("cross, padding", lengths_3_and_2(), {}, 4, {.padding = {.places = {{"input 1", {3, 2}}}}}),
      cross_attention("cross, a mask for each head", each_head, {}),
      cross_attention("cross, free d_k and d_v, no bias", {}, {.d_k = 1, .d_v = 3, .bias = false}),
      cross_attention("cross, dropout", {}, {.dropout = 0.4}),
      cross_attention("cross, one key", {}, {}, 1, {.zeros = {{"input 0", "softmax over one key is 1 for any query"}}}),
      cross_attention("cross, nothing to see", nothing, {}, 4,
                      {.zeros = all_but_output_bias(), .padding = {.places = {{"input 1", {0, 0}}}}}),
      copying(),
  };
}

}  // namespace

const std::vector<Sample>& module_samples() {
  static const std::vector<Sample> all =
      joined({plain_layers(), self_attentions(), cross_attentions(), model_samples()});
  return all;
}

}  // namespace orrery::nn
