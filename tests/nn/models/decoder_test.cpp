// Chapter 7. Decoder layers against the paper's composition, the stack, and causality.
#include "nn/models/stack.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Pass;

namespace {

nn::LayerOptions decoder_options(bool norm_first) {
  return {.d_model = 6, .num_heads = 2, .d_ff = 10, .norm_first = norm_first};
}

const Mask memory_padding = Mask::padding(Tensor::of<i32>({2}, {5, 2}));

}  // namespace

TEST_CASE("a decoder layer is its three sub-layers, each with its norm, post-norm and pre-norm") {
  Rng rng(1);
  for (const bool norm_first : {false, true}) {
    nn::DecoderLayer layer(decoder_options(norm_first), rng);
    make_noisy(layer, 2);
    const Variable x = constant(randn({2, 4, 6}, rng, f64)), memory = constant(randn({2, 5, 6}, rng, f64));
    Pass pass;
    const auto self = [&](const Variable& in) { return layer.self_attn(in, Mask::causal(), pass); };
    const auto cross = [&](const Variable& in) { return layer.multihead_attn(in, memory, memory_padding, pass); };
    const auto feed = [&](const Variable& in) { return layer.feed_forward(in, pass); };
    Variable expected = x;
    if (norm_first) {
      expected = expected + self(layer.norm1(expected));
      expected = expected + cross(layer.norm2(expected));
      expected = expected + feed(layer.norm3(expected));
    } else {
      expected = layer.norm1(expected + self(expected));
      expected = layer.norm2(expected + cross(expected));
      expected = layer.norm3(expected + feed(expected));
    }
    CHECK(same_bits(layer(x, memory, Mask::causal(), memory_padding, pass).value(), expected.value()));
  }
}

TEST_CASE("parameters have PyTorch's names") {
  Rng rng(1);
  nn::DecoderLayer layer(decoder_options(false), rng);
  const Parameters parameters = layer.parameters();
  REQUIRE(parameters.size() == 18);
  CHECK(parameters[0].name == "self_attn.in_proj.weight");
  CHECK(parameters[4].name == "multihead_attn.in_proj.weight");
  CHECK(parameters[8].name == "linear1.weight");
  CHECK(parameters[17].name == "norm3.bias");
  CHECK(layer.parameter_count() == 2 * ((18 * 6 + 18) + (6 * 6 + 6)) + (10 * 6 + 10) + (6 * 10 + 6) + 3 * 12);
}

TEST_CASE("a stack applies its layers in order and collects both kinds of weights") {
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

TEST_CASE("a later token leaves earlier outputs bit-equal") {
  Rng rng(1);
  const nn::Decoder decoder(2, false, decoder_options(false), rng);
  const Variable memory = constant(randn({1, 5, 6}, rng));
  Tensor x = randn({1, 4, 6}, rng);
  Pass pass;
  const Tensor before = decoder(constant(x.clone()), memory, Mask::causal(), Mask(), pass).value();
  x.write<float>()[3 * 6] += 10.0F;
  const Tensor after = decoder(constant(x), memory, Mask::causal(), Mask(), pass).value();
  CHECK(same_bits(slice(before, 1, 0, 3), slice(after, 1, 0, 3)));
  CHECK(distance(slice(before, 1, 3), slice(after, 1, 3)) > 0);
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
