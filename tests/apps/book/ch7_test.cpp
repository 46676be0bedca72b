// Chapter 7. What a reader of its programs may try: padding after a source, writing without a cache, adding LoRA's
// product to the weight, sharing keys among a single head, and looking at what layers add after one long step.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/generate/decoding.h"
#include "optim/adam.h"

using namespace orrery;

TEST_CASE("padding after a source moves no logit and no answer; a token there does") {
  constexpr i32 pad = 0;
  Rng rng(7);
  nn::Transformer model({.src_vocab_size = 20,
                         .tgt_vocab_size = 20,
                         .layer = {.d_model = 32, .num_heads = 4, .d_ff = 64},
                         .num_encoder_layers = 2,
                         .num_decoder_layers = 2,
                         .pad_id = pad},
                        rng);
  nn::to(model, f64);
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  const Tensor target = Tensor::of<i32>({1, 4}, {1, 8, 9, 10});
  const Tensor source = Tensor::of<i32>({1, 3}, {3, 4, 5});
  const Tensor padded = Tensor::of<i32>({1, 5}, {3, 4, 5, pad, pad});
  const Tensor longer = Tensor::of<i32>({1, 5}, {3, 4, 5, 6, pad});
  const auto moved = [&](const Tensor& other) {
    return std::sqrt(sum_of_squares(model(source, target, pass).value() - model(other, target, pass).value()));
  };
  CHECK(moved(padded) < 1e-12);
  CHECK(moved(longer) > 1e-3);
  const nn::GreedyOptions greedy{.bos = 1, .eos = 2, .max_len = 8};
  CHECK(same_bits(nn::greedy_decode(model, source, greedy), nn::greedy_decode(model, padded, greedy)));
}

TEST_CASE("a model that reads the whole text again for each token writes what generate writes") {
  constexpr i64 count = 12;
  Rng rng(3);
  nn::Gpt model(
      {.vocab_size = 11, .layer = {.d_model = 16, .num_heads = 2, .d_ff = 32}, .num_layers = 2, .max_len = 16}, rng);
  scale_in_place(model.token_embedding.weight.mutable_value(), 20);  // clear preferences, before any training
  const NoGradient no_gradient;
  std::vector<i32> generated, text{5, 2};
  nn::generate(model, text, count, {.temperature = 0}, rng, [&](i32 token) {
    generated.push_back(token);
    return true;
  });
  for (i64 i = 0; i < count; ++i) {
    nn::Pass pass = nn::Pass::inference();
    const i64 T = static_cast<i64>(text.size());
    const Tensor likeliest = argmax(model(Tensor::of<i32>({1, T}, text), pass).value());
    text.push_back(likeliest.data<i32>()[T - 1]);
  }
  CHECK(std::vector<i32>(text.begin() + 2, text.end()) == generated);
}

TEST_CASE("LoRA's B A, added to the weight W, gives the same map as W beside B A") {
  Rng rng(3);
  nn::Linear layer(6, 5, rng);
  nn::to(layer, f64);
  const Tensor A = randn({2, 6}, rng, f64), B = randn({5, 2}, rng, f64);
  const Variable x = constant(randn({4, 6}, rng, f64));
  const Tensor with = layer(x).value() + matmul(matmul(x.value(), A, Trans::b), B, Trans::b);
  add_in_place(layer.weight.mutable_value(), matmul(B, A));
  CHECK(std::sqrt(sum_of_squares(layer(x).value() - with)) < 1e-12);
}

TEST_CASE("with one head, shared keys are that head's own") {
  constexpr i64 d = 6;
  Rng rng(3);
  nn::MultiHeadAttention layer(d, 1, rng);
  nn::to(layer, f64);
  const Variable x = constant(randn({2, 4, d}, rng, f64));
  const Variable Q = reshape(layer.in_proj(x, {0, d}), {2, 1, 4, d}),
                 K = reshape(layer.in_proj(x, {d, 2 * d}), {2, 1, 4, d}),
                 V = reshape(layer.in_proj(x, {2 * d, 3 * d}), {2, 1, 4, d});
  const Variable shared = layer.out_proj(reshape(attention(Q, K, V, Mask()).output, {2, 4, d}));
  nn::Pass pass = nn::Pass::inference();
  CHECK(std::sqrt(sum_of_squares(layer(x, Mask(), pass).value() - shared.value())) < 1e-12);
}

TEST_CASE("after one long step post-norm layers add nearly the same vector at every position") {
  constexpr i64 d = 32, classes = 8;
  Rng rng(7);
  nn::Encoder stack(6, false, {.d_model = d, .num_heads = 4, .d_ff = 64}, rng);
  nn::Linear generator(d, classes, rng);
  nn::to(stack, f64);
  nn::to(generator, f64);
  const Variable input = constant(randn({16, 16, d}, rng, f64));
  const Tensor labels = randint(0, classes, {16, 16}, rng);
  const auto length = [](const Tensor& x) { return std::sqrt(sum_of_squares(x)); };
  double differs = 0;  // of what the last sub-layer adds, the part that differs between positions
  const auto forward = [&] {
    nn::Pass pass = nn::Pass::inference();
    Variable x = input;
    for (const nn::EncoderLayer& layer : stack.layers) {
      x = layer.norm1(x + layer.self_attn(x, Mask::causal(), pass));
      const Variable f = layer.feed_forward(x, pass);
      differs = length(f.value() - mean(f.value(), {1}, true)) / length(f.value());
      x = layer.norm2(x + f);
    }
    return x;
  };
  backward(cross_entropy(generator(forward()), labels));
  const double differed = differs;
  optim::Adam(stack.parameters()).step(0.01);
  forward();
  CAPTURE(differed);
  CHECK(differs < 0.5 * differed);
}
