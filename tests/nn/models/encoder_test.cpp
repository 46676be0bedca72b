// Chapter 7. Encoder layers against the paper's composition, and the stack.
#include "nn/models/stack.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Pass;

namespace {

nn::LayerOptions encoder_options(bool norm_first, double dropout = 0) {
  return {.d_model = 6, .num_heads = 2, .d_ff = 10, .dropout = dropout, .norm_first = norm_first};
}

const Mask source_padding = Mask::padding(Tensor::of<i32>({2}, {4, 2}));

}  // namespace

TEST_CASE("post-norm is LayerNorm(x + Sublayer(x)), pre-norm x + Sublayer(LayerNorm(x))") {
  Rng rng(1);
  for (const bool norm_first : {false, true}) {
    nn::EncoderLayer layer(encoder_options(norm_first), rng);
    make_noisy(layer, 2);
    const Variable x = constant(randn({2, 4, 6}, rng, f64));
    Pass pass;
    const auto attend = [&](const Variable& in) { return layer.self_attn(in, source_padding, pass); };
    const auto feed = [&](const Variable& in) { return layer.feed_forward(in, pass); };
    Variable expected;
    if (norm_first) {
      const Variable middle = x + attend(layer.norm1(x));
      expected = middle + feed(layer.norm2(middle));
    } else {
      const Variable middle = layer.norm1(x + attend(x));
      expected = layer.norm2(middle + feed(middle));
    }
    CHECK(same_bits(layer(x, source_padding, pass).value(), expected.value()));
  }
}

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

TEST_CASE("parameters have PyTorch's names, and their number follows from the sizes") {
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

TEST_CASE("a stack applies its layers in order, each with weights of its own, then the final norm") {
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
