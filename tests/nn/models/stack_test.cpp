// Chapter 7. Tests of stacks of layers: options, dropout, names, weights of their own, harmful padding, and the loss
// from a head. What layers compute is PyTorch's (tests/torch).
#include "nn/models/stack.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::nn;

namespace {

struct Doubled : LinearMap {
  Linear base;
  explicit Doubled(Linear linear) : base(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return scale(base(x, rows), 2.0); }
  Doubled clone() const { return Doubled(base.clone()); }
  void visit(Visitor& v) override { v.inlined(base); }
};

}  // namespace

TEST_CASE("the loss of a head is the cross entropy of its logits, whatever the head is") {
  Rng rng(1);
  Linear plain(5, 7, rng);
  to(plain, f64);
  const Variable last = parameter(randn({2, 3, 5}, rng, f64));
  const Tensor labels = Tensor::of<i32>({2, 3}, {1, 6, -100, 0, 3, 3});
  const CrossEntropyOptions options{.label_smoothing = 0.1};
  const double expected = cross_entropy(plain(last), labels, options).value().item(),
               doubled = cross_entropy(scale(plain(last), 2.0), labels, options).value().item();
  CHECK(head_loss(plain, last, labels, options).value().item() == doctest::Approx(expected).epsilon(1e-12));
  CHECK(head_loss(Linear(Doubled(plain.clone())), last, labels, options).value().item() ==
        doctest::Approx(doubled).epsilon(1e-12));
  CHECK(doubled != doctest::Approx(expected).epsilon(1e-3));
}

TEST_CASE("options that are not given follow from those that are") {
  LayerOptions options{.d_model = 8, .num_heads = 2, .dropout = 0.3, .bias = false};
  CHECK(options.attention().dropout == 0.3);
  CHECK(options.feed_forward().dropout == 0.3);
  CHECK(options.feed_forward().activation == Activation::relu);
  CHECK_FALSE(options.linear().bias);
  CHECK_FALSE(options.norm().bias);
  options.attention_dropout = 0.0;
  options.activation_dropout = 0.2;
  options.activation = Activation::gelu;
  CHECK(options.attention().dropout == 0);
  CHECK(options.feed_forward().dropout == 0.2);
  CHECK(options.feed_forward().activation == Activation::gelu);
}

TEST_CASE("values out of range, and two that do not fit, are refused by name") {
  const auto refusal = [](auto change) {
    LayerOptions options{.d_model = 8, .num_heads = 2};
    change(options);
    return small::error_of([&] { options.validate("model"); });
  };
  CHECK(refusal([](auto&) {}) == "");
  CHECK(refusal([](auto& o) { o.d_ff = 0; }) == "model: d_ff must be positive, not 0");
  CHECK(refusal([](auto& o) { o.num_heads = 3; }) ==
        "model: d_model (8) is not a multiple of num_heads (3); give d_k and d_v");
  CHECK(refusal([](auto& o) {
          o.num_heads = 3;
          o.d_k = 4;
          o.d_v = 5;
        }) == "");
  CHECK(refusal([](auto& o) { o.activation_dropout = 1; }).starts_with("model: activation_dropout must be in [0, 1)"));
  CHECK(refusal([](auto& o) { o.layer_norm_eps = 0; }).starts_with("model: layer_norm_eps must be in (0, 1)"));
}

namespace {

nn::LayerOptions encoder_options(bool norm_first, double dropout = 0) {
  return {.d_model = 6, .num_heads = 2, .d_ff = 10, .dropout = dropout, .norm_first = norm_first};
}

const Mask source_padding = Mask::padding(Tensor::of<i32>({2}, {4, 2}));

}  // namespace

TEST_CASE("dropout: two sub-layer outputs, the weights, the inner activations, each a draw of its own") {
  Rng rng(1);
  nn::LayerOptions options = encoder_options(false, 0.3);
  options.attention_dropout = options.activation_dropout = 0.0;
  const Variable x = constant(randn({2, 4, 6}, rng));
  Pass paper = Pass::training(1, 1), all = Pass::training(1, 1);
  nn::EncoderLayer(options, rng)(x, source_padding, paper);
  CHECK(paper.draws == 2);
  options.attention_dropout = options.activation_dropout = 0.3;
  nn::EncoderLayer(options, rng)(x, source_padding, all);
  CHECK(all.draws == 4);
}

TEST_CASE("an encoder layer's parameters have PyTorch's names, and their number follows from the sizes") {
  Rng rng(1);
  nn::EncoderLayer layer(encoder_options(false), rng);
  const std::vector<std::string> names = names_of(layer.parameters());
  CHECK(names == std::vector<std::string>{"self_attn.in_proj.weight", "self_attn.in_proj.bias",
                                          "self_attn.out_proj.weight", "self_attn.out_proj.bias", "linear1.weight",
                                          "linear1.bias", "linear2.weight", "linear2.bias", "norm1.weight",
                                          "norm1.bias", "norm2.weight", "norm2.bias"});
  CHECK(layer.parameter_count() == (18 * 6 + 18) + (6 * 6 + 6) + (10 * 6 + 10) + (6 * 10 + 6) + 2 * 12);
  nn::LayerOptions options = encoder_options(false);
  options.bias = false;
  CHECK(nn::EncoderLayer(options, rng).parameter_count() == 18 * 6 + 6 * 6 + 2 * 60 + 2 * 6);
}

TEST_CASE("an encoder applies its layers in order, each with weights of its own, then the final norm") {
  Rng rng(1);
  nn::Encoder encoder(3, true, encoder_options(false), rng);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < i; ++j) {
      Parameters a = encoder.layers[i].parameters(), b = encoder.layers[j].parameters();
      for (size_t k = 0; k < a.size(); ++k) {
        const bool is_matrix = a[k].value.shape().rank() == 2;
        CHECK(a[k].value.node() != b[k].value.node());
        if (is_matrix) CHECK(distance(a[k].value.value(), b[k].value.value()) > 0.01);
      }
    }
  }
  const Variable x = constant(randn({2, 4, 6}, rng));
  Pass pass;
  Variable expected = x;
  for (const nn::EncoderLayer& layer : encoder.layers) expected = layer(expected, source_padding, pass);
  expected = (*encoder.norm)(expected);
  CHECK(same_bits(encoder(x, source_padding, pass).value(), expected.value()));
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  CHECK(distance(encoder(x, source_padding, pass).value(), expected.value()) < 1e-5);
  REQUIRE(seen.all.size() == 3);
  CHECK(seen.all[2].attention == &*encoder.layers[2].self_attn);
  CHECK(seen.all[2].weights.shape() == Shape{2, 2, 4, 4});
  CHECK(encoder.parameters().front().name == "layers.0.self_attn.in_proj.weight");
  CHECK(encoder.parameters().back().name == "norm.bias");
  CHECK(encoder.parameter_count() == 3 * encoder.layers[0].parameter_count() + 12);
}

TEST_CASE("promise 13: a stack sets harmful padding to 0 once, where it enters, and copies nothing else") {
  struct Copies final : Observer {
    int seen = 0;
    void forward_begins(std::string_view name, std::span<const Variable* const>) override {
      seen += name == "zero_padding";
    }
  };
  Rng rng(1);
  for (const bool norm_first : {false, true}) {
    const nn::Encoder encoder(3, true, encoder_options(norm_first), rng);
    for (const double behind : {1.0, 1e38, double{NAN}}) {
      Tensor x = randn({2, 4, 6}, rng), rest = x.reshape({8, 6}).rows(6, 8);
      fill(rest, behind);
      Copies copies;
      const ObserverScope scope(copies);
      Pass pass;
      encoder(constant(x), source_padding, pass);
      CHECK(copies.seen == (behind == 1 ? 0 : 1));
    }
  }
}

namespace {

nn::LayerOptions decoder_options(bool norm_first) {
  return {.d_model = 6, .num_heads = 2, .d_ff = 10, .norm_first = norm_first};
}

const Mask memory_padding = Mask::padding(Tensor::of<i32>({2}, {5, 2}));

}  // namespace

TEST_CASE("a decoder applies its layers in order and collects both kinds of weights") {
  Rng rng(1);
  nn::Decoder decoder(2, false, decoder_options(false), rng);
  CHECK_FALSE(decoder.norm.has_value());
  CHECK(distance(decoder.layers[0].multihead_attn.as<nn::MultiHeadAttention>().in_proj.weight.value(),
                 decoder.layers[1].multihead_attn.as<nn::MultiHeadAttention>().in_proj.weight.value()) > 0.01);
  const Variable x = constant(randn({2, 4, 6}, rng)), memory = constant(randn({2, 5, 6}, rng));
  Pass pass;
  Variable expected = x;
  for (const nn::DecoderLayer& layer : decoder.layers)
    expected = layer(expected, memory, Mask::causal(), memory_padding, pass);
  nn::AttentionRecorder seen;
  CHECK(same_bits(decoder(x, memory, Mask::causal(), memory_padding, pass).value(), expected.value()));
  pass.recorder = &seen;
  CHECK(distance(decoder(x, memory, Mask::causal(), memory_padding, pass).value(), expected.value()) < 1e-5);
  for (const nn::DecoderLayer& layer : decoder.layers) {
    CHECK(seen.of(*layer.self_attn).shape() == Shape{2, 2, 4, 4});
    CHECK(seen.of(*layer.multihead_attn).shape() == Shape{2, 2, 4, 5});
  }
}

TEST_CASE("promise 13: a memory with NaN in its padding is cleared once for all layers, which add up its gradient") {
  Rng rng(1);
  constexpr i64 d_model = 64, m = 40;  // wide enough that sums in another order have other bits
  nn::Decoder decoder(3, false, {.d_model = d_model, .num_heads = 4, .d_ff = 8, .dropout = 0}, rng);
  const Variable x = constant(randn({4, 30, d_model}, rng));
  const Tensor clean = randn({4, m, d_model}, rng), dy = randn(x.shape(), rng);
  const Mask padding = Mask::padding(std::vector<i32>{m, m, m, m / 2});
  std::vector<Tensor> gradients;
  for (const double behind : {0.0, double{NAN}, 1e38}) {
    Tensor numbers = clean.clone(), rest = numbers.reshape({4 * m, d_model}).rows(4 * m - m / 2, 4 * m);
    fill(rest, behind);
    const Variable memory = parameter(numbers);
    Pass pass;
    backward(decoder(x, memory, Mask::causal(), padding, pass), dy);
    gradients.push_back(memory.gradient());
    CHECK(same_bits(gradients.back(), gradients.front()));
  }
}
