// Chapter 7. RecurrentTranslator: composition, loss, padding, ties, copies, training.
#include "apps/tasks/translate/rivals/recurrent_translator.h"

#include <doctest/doctest.h>

#include "tests/nn/models/translator_checks.h"

using namespace orrery;
using namespace orrery::nn;
using namespace orrery::translate;

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

TEST_CASE("the loss is the cross entropy of the logits, with padding and smoothing") {
  check_loss(build(small_recurrent()));
}

TEST_CASE("the model is embeddings, encoder, bridge, decoder with attention, generator") {
  RecurrentTranslator model = build(small_recurrent());
  make_noisy(model, 2);
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {4, 2}));
  const auto [annotations, last] = model.encoder(model.src_embed(short_source), mask);
  const Variable words = model.tgt_embed(short_target);
  const auto [states, contexts] = model.decoder(words, tanh(model.bridge(last)), annotations, mask);
  const Variable expected = model.generator(concat({states, contexts, words}, 2));
  CHECK(distance(logits_of(model, short_source, short_target), expected.value()) < 1e-13);
}

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

TEST_CASE("a row does not depend on the padding, nor on the rows beside it") { check_rows(build(small_recurrent())); }

TEST_CASE("a logit sees the target up to its own token, and every word of the source") {
  check_sight(build(small_recurrent()));
}

TEST_CASE("attention weights: one row for each target token, adding up to 1 over the words that are there") {
  const RecurrentTranslator model = build(small_recurrent());
  Pass pass;
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  model(short_source, short_target, pass);
  const Tensor weights = seen.of(model.decoder);
  REQUIRE(weights.shape() == Shape{2, 1, 3, 4});
  CHECK(distance(sum(weights, {-1}), full({2, 1, 3}, 1.0)) < 1e-6);
  CHECK(sum_of_squares(slice(weights.rows(1, 2), 3, 2)) == 0);
}

TEST_CASE("a shared table is one parameter; a clone is equal and independent") {
  check_sharing<RecurrentTranslator>(small_recurrent(), 9 * 6);
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

TEST_CASE("a recurrent translator learns to reverse") {
  check_learning(build({.src_vocab_size = 8,
                        .tgt_vocab_size = 8,
                        .d_embedding = 16,
                        .d_encoder = 24,
                        .d_decoder = 24,
                        .d_attention = 24,
                        .dropout = 0}),
                 0.01);
}
