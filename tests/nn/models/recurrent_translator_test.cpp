// Chapter 7. RecurrentTranslator: composition, loss, padding, ties, copies, training.
#include "nn/models/recurrent_translator.h"

#include <doctest/doctest.h>

#include "optim/optim.h"
#include "tests/nn/compare.h"
#include "tests/nn/models/short_sentences.h"

using namespace orrery;
using namespace orrery::nn;

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

RecurrentTranslator build(const RecurrentTranslatorConfig& config, u64 seed = 1) {
  Rng rng(seed);
  return RecurrentTranslator(config, rng);
}

Tensor logits_of(const RecurrentTranslator& model, const Tensor& from, const Tensor& to) {
  Pass pass;
  return model(from, to, pass).value();
}

}  // namespace

TEST_CASE("the loss is the cross entropy of the logits, with padding and smoothing") {
  const Tensor labels = Tensor::of<i32>({2, 3}, {5, 4, 2, 8, 2, 0});
  const CrossEntropyOptions options{.ignore_index = 0, .label_smoothing = 0.1};
  const RecurrentTranslator model = build(small_recurrent());
  Pass pass;
  const double expected = cross_entropy(model(short_source, short_target, pass), labels, options).item();
  CHECK(model.loss(short_source, short_target, labels, pass, options).item() ==
        doctest::Approx(expected).epsilon(1e-6));
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

TEST_CASE("a row does not depend on the padding, nor on the rows beside it") {
  RecurrentTranslator model = build(small_recurrent());
  make_noisy(model, 2);
  const Tensor alone = logits_of(model, Tensor::of<i32>({1, 2}, {7, 8}), short_target.rows(1, 2));
  CHECK(relative(alone, logits_of(model, short_source, short_target).rows(1, 2)) < 1e-13);
}

TEST_CASE("a logit sees the target up to its own token, and every word of the source") {
  RecurrentTranslator model = build(small_recurrent());
  make_noisy(model, 2);
  const Tensor before = logits_of(model, short_source, short_target);
  Tensor later = short_target.clone();
  later(0, 2) = 7;
  const Tensor after = logits_of(model, short_source, later);
  CHECK(same_bits(slice(before, 1, 0, 2), slice(after, 1, 0, 2)));
  CHECK_FALSE(same_bits(slice(before, 1, 2), slice(after, 1, 2)));
  for (i64 i = 0; i < 4; ++i) {
    Tensor other = short_source.clone();
    other(0, i) = 1;
    const Tensor moved = logits_of(model, other, short_target);
    CHECK(distance(moved.rows(0, 1), before.rows(0, 1)) > 1e-6);
    CHECK(same_bits(moved.rows(1, 2), before.rows(1, 2)));
  }
}

TEST_CASE("attention weights: one row for each target token, adding up to 1 over the words that are there") {
  const RecurrentTranslator model = build(small_recurrent());
  Pass pass;
  Tensor weights;
  model(short_source, short_target, pass, &weights);
  REQUIRE(weights.shape() == Shape{2, 3, 4});
  CHECK(distance(sum(weights, {-1}), full({2, 3}, 1.0)) < 1e-6);
  CHECK(sum_of_squares(slice(weights.rows(1, 2), 2, 2)) == 0);
}

TEST_CASE("a shared table is one parameter; a clone is equal and independent") {
  RecurrentTranslatorConfig config = small_recurrent();
  config.share_embeddings = true;
  RecurrentTranslator model = build(config);
  CHECK(model.parameter_count() == build(small_recurrent()).parameter_count() - 9 * 6);
  RecurrentTranslator copy = model.clone();
  CHECK(copy.tgt_embed.weight.value().shares_memory_with(copy.src_embed.weight.value()));
  const Tensor before = logits_of(copy, short_source, short_target);
  CHECK(same_bits(before, logits_of(model, short_source, short_target)));
  for (NamedParameter& p : model.parameters()) fill(p.value.mutable_value(), 0.5);
  CHECK(same_bits(before, logits_of(copy, short_source, short_target)));
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

TEST_CASE("it learns to reverse") {
  Rng rng(3);
  RecurrentTranslator model({.src_vocab_size = 8,
                             .tgt_vocab_size = 8,
                             .d_embedding = 16,
                             .d_encoder = 24,
                             .d_decoder = 24,
                             .d_attention = 24,
                             .dropout = 0},
                            rng);
  optim::Adam adam(model.parameters(), {});
  double loss = 0;
  for (i64 step = 1; step <= 150; ++step) {
    const Tensor words = randint(3, 8, {32, 4}, rng), reversed = flip(words, 1);
    const Tensor given = concat({full({32, 1}, 1, Dtype::i32), slice(reversed, 1, 0, -1)}, 1);
    Pass pass = Pass::training(1, step);
    const Variable l = model.loss(words, given, reversed, pass);
    loss = l.item();
    backward(l);
    optim::clip_grad_norm(adam.parameters(), 1.0);
    adam.step(0.01);
  }
  CHECK(loss < 0.1);
}
