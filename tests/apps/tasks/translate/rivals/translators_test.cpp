// Chapter 7. The rivals: their configurations; dropout, initial weights, loss, padding, ties, copies. What they compute
// is PyTorch's (tests/torch).
#include "apps/tasks/translate/rivals/convolutional_translator.h"

#include <doctest/doctest.h>

#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "tests/core/support.h"
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

namespace {

RecurrentTranslatorConfig small_recurrent() {
  return {.src_vocab_size = 9,
          .tgt_vocab_size = 9,
          .d_embedding = 6,
          .d_encoder = 5,
          .d_decoder = 7,
          .d_attention = 4,
          .dropout = 0};
}

RecurrentTranslator build(const RecurrentTranslatorConfig& config) { return built<RecurrentTranslator>(config); }

}  // namespace

TEST_CASE("with d_output, the generator reads tanh of a linear map; of the table's width, it can be the table") {
  RecurrentTranslatorConfig config = small_recurrent();
  config.d_output = 6;
  config.share_embeddings = true;
  RecurrentTranslator model = build(config);
  make_noisy(model, 2);
  CHECK(model.generator.weight.value().shares_memory_with(model.src_embed.weight.value()));
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {4, 2}));
  const auto [annotations, last] = model.encoder(model.src_embed(short_source), mask);
  const Variable words = model.tgt_embed(short_target);
  const auto [states, contexts] = model.decoder(words, tanh(model.bridge(last)), annotations, mask);
  const Variable expected = model.generator(tanh((*model.output)(concat({states, contexts, words}, 2))));
  CHECK(distance(logits_of(model, short_source, short_target), expected.value()) < 1e-13);
}

TEST_CASE("dropout acts in training alone, on embeddings and on what the generator reads") {
  for (const bool output : {false, true}) {
    RecurrentTranslatorConfig config = small_recurrent();
    (output ? config.output_dropout : config.dropout) = 0.4;
    const RecurrentTranslator model = build(config);
    Pass one = Pass::training(1, 1), again = Pass::training(1, 1), other = Pass::training(1, 2), off;
    const Tensor y = model(short_source, short_target, one).value();
    CHECK(one.draws == (output ? 1 : 2));
    CHECK(same_bits(y, model(short_source, short_target, again).value()));
    CHECK_FALSE(same_bits(y, model(short_source, short_target, other).value()));
    CHECK(same_bits(logits_of(build(small_recurrent()), short_source, short_target),
                    model(short_source, short_target, off).value()));
  }
}

TEST_CASE("loss, padding, sight and shared tables of both") {
  check_loss(build(small_recurrent()));
  check_loss(build(small_convolutional()));
  check_rows(build(small_recurrent()));
  check_rows(build(small_convolutional()));
  check_sight(build(small_recurrent()));
  check_sight(build(small_convolutional()));
  check_sharing<RecurrentTranslator>(small_recurrent(), 9 * 6);
  check_sharing<ConvolutionalTranslator>(small_convolutional(), 2 * 9 * 6);
}

namespace {

const RecurrentTranslatorConfig recurrent{.src_vocab_size = 30,
                                          .tgt_vocab_size = 30,
                                          .d_embedding = 5,
                                          .d_encoder = 6,
                                          .d_decoder = 7,
                                          .d_attention = 8,
                                          .d_output = 5,
                                          .dropout = 0.25,
                                          .output_dropout = 0.125,
                                          .max_len = 19,
                                          .pad_id = 3,
                                          .share_embeddings = true};
const ConvolutionalTranslatorConfig convolutional{.src_vocab_size = 30,
                                                  .tgt_vocab_size = 30,
                                                  .d_embedding = 5,
                                                  .d_hidden = 6,
                                                  .num_encoder_layers = 2,
                                                  .num_decoder_layers = 3,
                                                  .width = 5,
                                                  .dropout = 0.125,
                                                  .max_len = 17,
                                                  .pad_id = -1,
                                                  .share_embeddings = true};

}  // namespace

TEST_CASE("every field survives as JSON, and absent fields keep their defaults") {
  CHECK(RecurrentTranslatorConfig::of_json(to_json(recurrent)) == recurrent);
  CHECK(ConvolutionalTranslatorConfig::of_json(to_json(convolutional)) == convolutional);
  const RecurrentTranslatorConfig r =
      RecurrentTranslatorConfig::of_json(R"({"src_vocab_size": 9, "tgt_vocab_size": 8, "d_decoder": 3})");
  CHECK(r == RecurrentTranslatorConfig{.src_vocab_size = 9, .tgt_vocab_size = 8, .d_decoder = 3});
  const ConvolutionalTranslatorConfig c =
      ConvolutionalTranslatorConfig::of_json(R"({"src_vocab_size": 9, "tgt_vocab_size": 8, "width": 1})");
  CHECK(c == ConvolutionalTranslatorConfig{.src_vocab_size = 9, .tgt_vocab_size = 8, .width = 1});
}

TEST_CASE("counts are those of the models, and the tutorial's model has 20,518,405 parameters") {
  Rng rng(1);
  RecurrentTranslatorConfig r = recurrent;
  ConvolutionalTranslatorConfig c = convolutional;
  for (const bool share : {true, false}) {
    r.share_embeddings = c.share_embeddings = share;
    for (const i64 d_output : {0, 4, 5}) {
      r.d_output = d_output;
      CHECK(r.shares_generator() == (share && d_output == 5));
      CHECK(RecurrentTranslator(r, rng).parameter_count() == r.parameter_count());
    }
    CHECK(ConvolutionalTranslator(c, rng).parameter_count() == c.parameter_count());
  }
  CHECK(RecurrentTranslatorConfig{.src_vocab_size = 7853, .tgt_vocab_size = 5893}.parameter_count() == 20518405);
}

TEST_CASE("a value out of range is an error that names the field") {
  const auto error_after = [](auto config, auto change) {
    change(config);
    return small::error_of([&] { config.validate(); });
  };
  CHECK(error_after(recurrent, [](auto&) {}) == "");
  CHECK(error_after(convolutional, [](auto&) {}) == "");
  CHECK(small::contains(error_after(recurrent, [](auto& c) { c.d_output = -1; }), "d_output must be positive, or 0"));
  CHECK(small::contains(error_after(recurrent, [](auto& c) { c.pad_id = 30; }), "pad_id (30) must be below both"));
  CHECK(small::contains(error_after(convolutional, [](auto& c) { c.width = 4; }), "width must be odd and positive"));
  CHECK(small::contains(error_after(convolutional, [](auto& c) { c.tgt_vocab_size = 31; }),
                        "share_embeddings needs one vocabulary, but the sizes are 30 and 31"));
}
