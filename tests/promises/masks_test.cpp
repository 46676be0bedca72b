// Chapter 8. Promise 13: what a mask hides from a whole model reaches neither a logit nor a gradient, whatever it is.
#include <doctest/doctest.h>

#include <cmath>

#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"
#include "nn/generate/decoding.h"
#include "nn/models/transformer.h"
#include "tests/nn/compare.h"

using namespace orrery;

namespace {

constexpr i32 last_word = 8;  // stands only where no earlier position may see it

nn::Transformer model_of(bool norm_first, double dropout = 0) {
  Rng rng(4);
  nn::Transformer model(
      {.src_vocab_size = 9,
       .tgt_vocab_size = 9,
       .layer = {.d_model = 12, .num_heads = 3, .d_ff = 20, .dropout = dropout, .norm_first = norm_first},
       .num_encoder_layers = 2,
       .num_decoder_layers = 2,
       .max_len = 12},
      rng);
  return model;
}

const Tensor source = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 7, 5, 0, 0});
const Tensor target = Tensor::of<i32>({2, 4}, {1, 5, 4, last_word, 1, 6, 3, last_word});

// Row `id` of an embedding, every element set to `value`.
void poison(nn::Embedding& table, i64 id, double value) {
  Tensor row = table.weight.mutable_value().rows(id, id + 1);
  fill(row, value);
}

Tensor cotangent(const Shape& shape) {
  Rng rng(6);
  return randn(shape, rng);
}

// dL/d(logits), zero except at the first lengths[b] positions of row b.
Tensor cotangent_of_first(const Shape& shape, const std::vector<i64>& lengths) {
  Tensor dy = cotangent(shape);
  for (i64 b = 0; b < shape[0]; ++b) {
    Tensor row = dy.rows(b, b + 1).reshape({shape[1], shape[2]});
    Tensor rest = row.rows(lengths[static_cast<size_t>(b)], shape[1]);
    fill(rest, 0);
  }
  return dy;
}

// The logits of the first lengths[b] positions of each row b, and the gradient of every parameter for a loss that
// depends on these logits only.
std::vector<Tensor> logits_and_gradients(nn::Transformer& model, const Tensor& target,
                                         const std::vector<i64>& lengths) {
  nn::Pass pass = nn::Pass::training(1, 1);
  const Variable logits = model(source, target, pass);
  backward(logits, cotangent_of_first(logits.shape(), lengths));
  std::vector<Tensor> all;
  for (i64 b = 0; b < logits.shape()[0]; ++b)
    all.push_back(slice(logits.value().rows(b, b + 1), 1, 0, lengths[static_cast<size_t>(b)]));
  for (NamedParameter& p : model.parameters()) {
    all.push_back(p.value.gradient());
    p.value.clear_gradient();
  }
  return all;
}

}  // namespace

TEST_CASE("promise 13: whatever the embeddings of padding hold changes no bit of a logit or of a gradient") {
  const Tensor padded = Tensor::of<i32>({2, 4}, {1, 5, 4, 0, 1, 6, 0, 0});
  for (const bool norm_first : {false, true}) {
    for (const double dropout : {0.0, 0.3}) {
      CAPTURE(norm_first);
      CAPTURE(dropout);
      nn::Transformer model = model_of(norm_first, dropout);
      for (nn::Embedding* table : {&model.src_embed, &model.tgt_embed}) poison(*table, 0, 0);
      const std::vector<Tensor> expected = logits_and_gradients(model, padded, {3, 2});
      for (const double value : {double{NAN}, double{INFINITY}, -double{INFINITY}, 1e15, 1e30, -1e38}) {
        CAPTURE(value);
        for (nn::Embedding* table : {&model.src_embed, &model.tgt_embed}) poison(*table, 0, value);
        const std::vector<Tensor> got = logits_and_gradients(model, padded, {3, 2});
        for (size_t i = 0; i < got.size(); ++i) {
          CHECK(all_finite(got[i]));
          CHECK(same_bits(got[i], expected[i]));
        }
      }
    }
  }
}

namespace {

const Tensor three_sources = Tensor::of<i32>({3, 4}, {3, 4, 5, 6, 7, 5, 0, 0, 2, 0, 0, 0});

// The logits of two steps of generation.
template <class Model> std::vector<Tensor> logits_of_steps(const Model& model) {
  const auto decoder = stepwise_decoder(model, three_sources, 5);
  std::vector<Tensor> logits;
  for (const i32 token : {1, 3}) logits.push_back(decoder->next_logits(full({3, 1}, token, Dtype::i32)));
  return logits;
}

template <class Model> void check_generation(Model model) {
  const std::vector<Tensor> expected = logits_of_steps(model);
  poison(model.src_embed, 0, NAN);
  const std::vector<Tensor> got = logits_of_steps(model);
  for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
}

}  // namespace

TEST_CASE("promise 13: NaN in the embedding of padding changes no bit of a logit in generation") {
  Rng rng(4);
  check_generation(model_of(false));
  check_generation(model_of(true));
  check_generation(translate::RecurrentTranslator(
      {.src_vocab_size = 9, .tgt_vocab_size = 9, .d_embedding = 6, .d_encoder = 5, .d_decoder = 7, .d_attention = 4},
      rng));
  check_generation(translate::ConvolutionalTranslator(
      {.src_vocab_size = 9,
       .tgt_vocab_size = 9,
       .d_embedding = 6,
       .d_hidden = 8,
       .num_encoder_layers = 2,
       .num_decoder_layers = 3,  // so that three gradients of the memory are added up
       .max_len = 8},
      rng));
}

TEST_CASE("promise 13: NaN in the embedding of padding changes nothing that is written, although ended rows read it") {
  nn::Transformer model = model_of(false);
  model.generator.bias.mutable_value().write<float>()[0] = -1e4F;  // padding is never the likeliest
  const auto written = [&](i32 eos) { return nn::greedy_decode(model, three_sources, {.eos = eos, .max_len = 8}); };
  const i32 eos = written(-1).data<i32>()[1];  // so that row 0 ends at its second token at the latest
  const Tensor expected = written(eos);
  REQUIRE(expected.at(expected.size(1) - 1) == 0);
  poison(model.tgt_embed, 0, NAN);
  CHECK(same_bits(written(eos), expected));
}

TEST_CASE("promise 13: what stands in a cache beyond its length reaches nothing") {
  Rng rng(4);
  nn::MultiHeadAttention attention(12, 3, rng);
  const NoGradient nothing_recorded;
  const Variable x = constant(randn({2, 1, 12}, rng));
  std::vector<Tensor> outputs;
  for (const double unused : {0.0, double{NAN}}) {
    nn::AttentionState state = attention.state(2, 5, f32);
    fill(state.as<nn::KeyValueCache>().keys, unused);
    fill(state.as<nn::KeyValueCache>().values, unused);
    for (int step = 0; step < 3; ++step) outputs.push_back(attention.next(x, state).value());
  }
  for (size_t i = 0; i < 3; ++i) CHECK(same_bits(outputs[i], outputs[i + 3]));
}

TEST_CASE(
    "promise 13: a loud token in the future changes no bit of an earlier logit, nor of the gradients of its loss") {
  for (const bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    nn::Transformer model = model_of(norm_first);
    const std::vector<Tensor> expected = logits_and_gradients(model, target, {3, 3});
    // Without a norm in front, the score of this token with itself is about the square of its numbers. For 1e30 that
    // overflows f32: its row becomes NaN, and the next layer meets NaN under a causal mask (tests/promises/README.md).
    const double loudest = norm_first ? 1e30 : 1e18;
    for (const double value : {1e15, -1e15, loudest, -loudest}) {
      CAPTURE(value);
      poison(model.tgt_embed, last_word, value);
      const std::vector<Tensor> got = logits_and_gradients(model, target, {3, 3});
      for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
    }
  }
}

TEST_CASE("promise 13: a source without a single visible token gives finite logits and gradients") {
  for (const bool norm_first : {false, true}) {
    nn::Transformer model = model_of(norm_first);
    nn::Pass pass;
    const Tensor empty = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 0, 0, 0, 0});
    const Variable logits = model(empty, target, pass);
    CHECK(all_finite(logits.value()));
    backward(logits, cotangent(logits.shape()));
    for (const NamedParameter& p : model.parameters()) CHECK(all_finite(p.value.gradient()));
  }
}
