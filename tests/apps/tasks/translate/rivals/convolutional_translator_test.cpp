// Chapter 7. ConvolutionalTranslator: composition, loss, padding, ties, copies, training.
#include "apps/tasks/translate/rivals/convolutional_translator.h"

#include <doctest/doctest.h>

#include "tests/nn/models/translator_checks.h"

using namespace orrery;
using namespace orrery::nn;
using namespace orrery::translate;

namespace {

ConvolutionalTranslatorConfig small_convolutional() {
  return {.src_vocab_size = 9,
          .tgt_vocab_size = 9,
          .d_embedding = 6,
          .d_hidden = 8,
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .dropout = 0,
          .max_len = 12};
}

ConvolutionalTranslator build(const ConvolutionalTranslatorConfig& config) {
  return built<ConvolutionalTranslator>(config);
}

}  // namespace

TEST_CASE("the loss is the cross entropy of the logits, with padding and smoothing") {
  check_loss(build(small_convolutional()));
}

TEST_CASE(
    "the model is embeddings and positions, convolutions with sums, attention in every decoder layer, generator") {
  ConvolutionalTranslator model = build(small_convolutional());
  make_noisy(model, 2);
  const double scale = std::sqrt(0.5);
  const Tensor sources = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 7, 8, 6, 5});  // no padding
  const Variable e = model.src_embed(sources) + slice(model.src_positions.weight, 0, 0, 4);
  Variable h = model.encoder_in(e);
  for (const ConvolutionalEncoderLayer& layer : model.encoder) h = (glu(layer.convolution(h)) + h) * scale;
  const Variable keys = model.encoder_out(h), values = (keys + e) * scale;
  const Variable g = model.tgt_embed(short_target) + slice(model.tgt_positions.weight, 0, 0, 3);
  h = model.decoder_in(g);
  for (const ConvolutionalDecoderLayer& layer : model.decoder) {
    const Variable d = glu(layer.convolution(h));
    const Variable weights = softmax(matmul((layer.query(d) + g) * scale, keys, Trans::b));
    h = ((d + layer.attended(matmul(weights, values))) * scale + h) * scale;
  }
  const Variable expected = model.generator(model.decoder_out(h));
  CHECK(distance(logits_of(model, sources, short_target), expected.value()) < 1e-13);
}

TEST_CASE("a row does not depend on the padding, nor on the rows beside it") {
  check_rows(build(small_convolutional()));
}

TEST_CASE("a logit sees the target up to its own token, and every word of the source") {
  check_sight(build(small_convolutional()));
}

TEST_CASE("attention weights of every layer add up to 1 over the words that are there") {
  const ConvolutionalTranslator model = build(small_convolutional());
  Pass pass;
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  model(short_source, short_target, pass);
  for (const ConvolutionalDecoderLayer& layer : model.decoder) {
    const Tensor weights = seen.of(layer);
    REQUIRE(weights.shape() == Shape{2, 1, 3, 4});
    CHECK(distance(sum(weights, {-1}), full({2, 1, 3}, 1.0)) < 1e-6);
    CHECK(sum_of_squares(slice(weights.rows(1, 2), 3, 2)) == 0);
  }
}

TEST_CASE("a shared table is one parameter; a clone is equal and independent") {
  check_sharing<ConvolutionalTranslator>(small_convolutional(), 2 * 9 * 6);
}

TEST_CASE("dropout acts in training alone: on embeddings, before each convolution, before the generator") {
  ConvolutionalTranslatorConfig config = small_convolutional();
  config.dropout = 0.4;
  ConvolutionalTranslator model = build(config), plain = build(small_convolutional());
  copy_parameters(plain, model);
  Pass one = Pass::training(1, 1), again = Pass::training(1, 1), other = Pass::training(1, 2), off;
  const Tensor y = model(short_source, short_target, one).value();
  CHECK(one.draws == 2 + 4 + 1);
  CHECK(same_bits(y, model(short_source, short_target, again).value()));
  CHECK_FALSE(same_bits(y, model(short_source, short_target, other).value()));
  CHECK(same_bits(logits_of(plain, short_source, short_target), model(short_source, short_target, off).value()));
}

TEST_CASE("weights start as the paper says: variance 4 (1 - dropout) / n before a glu, 1 / n elsewhere, biases 0") {
  ConvolutionalTranslatorConfig config = small_convolutional();
  config.d_hidden = 64;
  config.dropout = 0.4;
  config.src_vocab_size = 500;
  ConvolutionalTranslator model = build(config);
  const auto variance = [](const Variable& x) {
    return sum_of_squares(x.value()) / static_cast<double>(x.value().count());
  };
  CHECK(variance(model.encoder[0].convolution.weight) == doctest::Approx(4 * 0.6 / (64 * 3)).epsilon(0.05));
  CHECK(variance(model.decoder[0].query.weight) == doctest::Approx(1.0 / 64).epsilon(0.2));
  CHECK(variance(model.src_embed.weight) == doctest::Approx(0.01).epsilon(0.1));
  CHECK(variance(model.decoder[1].convolution.bias) == 0);
}

TEST_CASE("a sequence longer than max_len is an error") {
  const ConvolutionalTranslator model = build(small_convolutional());
  Pass pass;
  CHECK_THROWS_WITH_AS(model(full({1, 13}, 3, Dtype::i32), short_target.rows(0, 1), pass),
                       doctest::Contains("13 positions, but max_len is 12"), Error);
}

TEST_CASE("a convolutional translator learns to reverse") {
  check_learning(build({.src_vocab_size = 8,
                        .tgt_vocab_size = 8,
                        .d_embedding = 24,
                        .d_hidden = 32,
                        .num_encoder_layers = 2,
                        .num_decoder_layers = 2,
                        .dropout = 0,
                        .max_len = 5}),
                 0.003);
}

TEST_CASE("a memory with NaN in its padding is cleared once for all layers") {
  struct Clearings : Observer {
    int count = 0;
    void forward_begins(std::string_view name, std::span<const Variable* const>) override {
      count += name == "zero_padding";
    }
  } clearings;
  const ConvolutionalTranslator model = build(small_convolutional());
  Rng rng(1);
  Tensor clean = randn({2, 4, 6}, rng), broken = clean.clone();
  for (i64 j = 0; j < 6; ++j) clean(1, 3, j) = 0, broken(1, 3, j) = NAN;
  Pass pass;
  const Mask mask = Mask::padding({4, 3});
  const Tensor expected = model.hidden(short_target, {constant(clean), constant(clean), mask}, pass).value();
  const ObserverScope scope(clearings);
  const Variable memory = constant(broken);
  CHECK(same_bits(model.hidden(short_target, {memory, memory, mask}, pass).value(), expected));
  CHECK(clearings.count == 2);  // keys and values
}
