// Chapter 7. Both translators one step at a time give the logits of the whole target; rows can be chosen.
#include "apps/tasks/translate/rivals/states.h"

#include <doctest/doctest.h>

#include <cmath>

#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/nn/compare.h"
#include "tests/nn/generate/step_again.h"

using namespace orrery;
using namespace orrery::nn;
using namespace orrery::translate;

namespace {

RecurrentTranslator recurrent_model(i64 d_output = 0) {
  Rng rng(1);
  RecurrentTranslator model({.src_vocab_size = 11,
                             .tgt_vocab_size = 13,
                             .d_embedding = 6,
                             .d_encoder = 5,
                             .d_decoder = 7,
                             .d_attention = 4,
                             .d_output = d_output},
                            rng);
  make_noisy(model, 2);
  return model;
}

ConvolutionalTranslator convolutional_model(i64 width = 3) {
  Rng rng(1);
  ConvolutionalTranslator model({.src_vocab_size = 11,
                                 .tgt_vocab_size = 13,
                                 .d_embedding = 6,
                                 .d_hidden = 8,
                                 .num_encoder_layers = 2,
                                 .num_decoder_layers = 3,
                                 .width = width,
                                 .max_len = 12},
                                rng);
  make_noisy(model, 2);
  return model;
}

RecurrentState state_of(const RecurrentTranslator& model, const Tensor& source) {
  return recurrent_state(model, source);
}
ConvolutionalState state_of(const ConvolutionalTranslator& model, const Tensor& source) {
  return convolutional_state(model, source);
}

const Tensor source = Tensor::of<i32>({3, 5}, {3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 3, 4, 0, 0});

template <class Model>
void check_steps(Model& model) {
  Rng rng(4);
  const Tensor target = randint(1, 13, {3, 12}, rng);
  const NoGradient nothing_recorded;
  for (const Dtype dtype : {f64, f32}) {
    to(model, dtype);
    Pass pass = Pass::inference();
    const Tensor whole = model(source, target, pass).value();
    for (const std::vector<i64>& pieces : {std::vector<i64>(12, 1), {12}, {7, 1, 4}, {1, 11}}) {
      auto state = state_of(model, source);
      std::vector<Tensor> parts;
      i64 begin = 0;
      for (const i64 n : pieces) {
        parts.push_back(next_logits(model, slice(target, 1, begin, begin + n), state));
        begin += n;
      }
      CHECK(relative(concat(parts, 1), whole) < bound(dtype));
    }
  }
}

// Rows that are chosen go on as the rows they were, with their own source and their own past.
template <class Model>
void check_chosen_rows(const Model& model) {
  Rng rng(5);
  const NoGradient nothing_recorded;
  const Tensor first = randint(1, 13, {3, 2}, rng), then = randint(1, 13, {4, 3}, rng);
  auto state = state_of(model, source);
  next_logits(model, first, state);
  const std::vector<i64> chosen{2, 0, 0, 2}, swapped{3, 2, 1, 0};
  choose_rows(state, chosen);
  const Tensor before_swap = next_logits(model, slice(then, 1, 0, 1), state);
  const Tensor keys = state.source.keys;
  choose_rows(state, swapped);  // the sources of all rows stay: nothing of them is copied
  CHECK(state.source.source_of == std::vector<i64>{2, 0, 0, 2});
  CHECK(state.source.keys.shares_memory_with(keys));
  const Tensor after_swap = next_logits(model, slice(then, 1, 1), state);
  for (size_t i = 0; i < 4; ++i) {
    const i64 row = static_cast<i64>(i), origin = chosen[static_cast<size_t>(swapped[i])];
    Pass pass = Pass::inference();
    const Tensor past = concat({first.rows(origin, origin + 1), slice(then.rows(3 - row, 4 - row), 1, 0, 1),
                                slice(then.rows(row, row + 1), 1, 1)},
                               1);
    const Tensor whole = model(source.rows(origin, origin + 1), past, pass).value();
    CHECK(relative(before_swap.rows(3 - row, 4 - row), slice(whole, 1, 2, 3)) < 1e-12);
    CHECK(relative(after_swap.rows(row, row + 1), slice(whole, 1, 3)) < 1e-12);
  }
}

template <class Model>
void check_refusals(const Model& model, const char* no_row) {
  const Tensor tokens = full({3, 1}, 1, Dtype::i32);
  auto recorded = state_of(model, source);
  CHECK_THROWS_WITH_AS(next_logits(model, tokens, recorded), doctest::Contains("nothing may be recorded"), Error);
  const NoGradient nothing_recorded;
  auto state = state_of(model, source);
  CHECK_THROWS_WITH_AS(next_logits(model, tokens.rows(0, 2), state), "translator state: has 3 rows, the tokens have 2",
                       Error);
  CHECK_THROWS_WITH_AS(choose_rows(state, std::vector<i64>{0, 3}), no_row, Error);
}

}  // namespace

TEST_CASE("a recurrent translator has the same logits token by token and in pieces as all at once") {
  for (const i64 d_output : {0, 6}) {
    RecurrentTranslator model = recurrent_model(d_output);
    check_steps(model);
  }
}

TEST_CASE("a convolutional translator has the same logits token by token and in pieces as all at once") {
  for (const i64 width : {1, 3, 5}) {
    ConvolutionalTranslator model = convolutional_model(width);
    check_steps(model);
  }
}

TEST_CASE("a beam of 1 writes what the whole model finds likeliest, row by row, until the end") {
  const auto check_greedy = [](const auto& model) {
    constexpr i32 bos = 1, eos = 2;
    const i64 limit = 9;
    const auto decoder = stepwise_decoder(model, source, limit);
    const auto found =
        beam_search(*decoder, std::vector<i64>{limit, limit, limit}, {.beam = 1, .bos = bos, .eos = eos});
    const NoGradient nothing_recorded;
    for (i64 row = 0; row < 3; ++row) {
      std::vector<i32> begun{bos};
      const std::vector<i32>& written = found[static_cast<size_t>(row)].tokens;
      for (i64 t = 0; t < std::ssize(written); ++t) {
        Pass pass = Pass::inference();
        const Tensor target = Tensor::of<i32>({1, t + 1}, begun);
        const Tensor likeliest = argmax(model(source.rows(row, row + 1), target, pass).value());
        begun.push_back(static_cast<i32>(likeliest.at(t)));
        CHECK(written[static_cast<size_t>(t)] == begun.back());
        CHECK((begun.back() == eos || t + 1 == limit) == (t + 1 == std::ssize(written)));
      }
    }
  };
  check_greedy(recurrent_model());
  check_greedy(convolutional_model());
}

TEST_CASE("beam search with either: probabilities are those of the whole model") {
  const auto check_beams = [](auto model) {
    to(model, f64);
    const NoGradient nothing_recorded;
    const i64 limit = 9;
    for (const i64 beam : {1, 4}) {
      const auto decoder = stepwise_decoder(model, source, limit);
      const auto found = beam_search(*decoder, std::vector<i64>{limit, 4, limit}, {.beam = beam});
      REQUIRE(found.size() == 3);
      for (i64 row = 0; row < 3; ++row) {
        const Hypothesis& best = found[static_cast<size_t>(row)];
        std::vector<i32> target{1};
        target.insert(target.end(), best.tokens.begin(), best.tokens.end() - 1);
        Pass pass = Pass::inference();
        const i64 T = std::ssize(target);
        const Variable logits = model(source.rows(row, row + 1), Tensor::of<i32>({1, T}, target), pass);
        const Tensor log_p = log_softmax(logits).value();
        double total = 0;
        for (i64 t = 0; t < T; ++t) {
          const i32 token = best.tokens[static_cast<size_t>(t)];
          total += log_p(0, t, token);
        }
        CHECK(std::abs(best.log_probability - total) < 1e-11);
      }
    }
  };
  check_beams(recurrent_model());
  check_beams(convolutional_model());
  CHECK_THROWS_WITH_AS(stepwise_decoder(convolutional_model(), source, 13),
                       "translator state: max_len must be from 1 to 12, the model's own, not 13", Error);
  CHECK_THROWS_WITH_AS(stepwise_decoder(recurrent_model(), source, 257),
                       "translator state: max_len must be from 1 to 256, the model's own, not 257", Error);
  CHECK_THROWS_AS(stepwise_decoder(recurrent_model(), source, 0), Error);
}

TEST_CASE("a step that failed can be made again") {
  const auto check_model = [](const auto& model) {
    check_step_again([&] { return state_of(model, source); },
                     [&](const Tensor& tokens, auto& state) { return next_logits(model, tokens, state); });
  };
  check_model(recurrent_model());
  check_model(convolutional_model());
}

TEST_CASE("rows that are chosen, repeated and swapped go on as if each were alone") {
  check_chosen_rows(recurrent_model());
  check_chosen_rows(convolutional_model());
}

TEST_CASE("recording, other numbers of rows, rows that are not there, and too many positions are errors") {
  check_refusals(recurrent_model(), "translator state: row 3 is not one of 3");
  const ConvolutionalTranslator model = convolutional_model();
  check_refusals(model, "translator state: row 3 is not one of 3");
  const NoGradient nothing_recorded;
  ConvolutionalState state = convolutional_state(model, source);
  next_logits(model, full({3, 10}, 1, Dtype::i32), state);
  CHECK_THROWS_AS(next_logits(model, full({3, 3}, 1, Dtype::i32), state), Error);
}
