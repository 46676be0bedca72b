// Chapter 7. Both translators one step at a time give the logits of the whole target, and rows can be chosen; an
// ensemble of three kinds of models against the mean of what each says of the whole target.
#include "apps/tasks/translate/rivals/states.h"

#include <doctest/doctest.h>
#include <cmath>

#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/generate/ensemble.h"
#include "tests/core/support.h"
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

template <class Model> void check_steps(Model& model) {
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
template <class Model> void check_chosen_rows(const Model& model) {
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

template <class Model> void check_refusals(const Model& model, const char* no_row) {
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

TEST_CASE("an answer may be as long as a model can write, and has at least a token") {
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

namespace {

using Decoders = std::vector<std::unique_ptr<StepwiseDecoder>>;

constexpr i64 words = 13;
const Tensor three_sources = Tensor::of<i32>({3, 5}, {3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 10, 3, 4, 0, 0});

struct Models {
  Transformer transformer;
  RecurrentTranslator recurrent;
  ConvolutionalTranslator convolutional;

  explicit Models(Dtype dtype = f64, Rng rng = Rng(1))
      : transformer({.src_vocab_size = words,
                     .tgt_vocab_size = words,
                     .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12},
                     .num_encoder_layers = 1,
                     .num_decoder_layers = 1,
                     .max_len = 12,
                     .pad_id = 0},
                    rng),
        recurrent({.src_vocab_size = words,
                   .tgt_vocab_size = words,
                   .d_embedding = 6,
                   .d_encoder = 5,
                   .d_decoder = 7,
                   .d_attention = 4},
                  rng),
        convolutional({.src_vocab_size = words,
                       .tgt_vocab_size = words,
                       .d_embedding = 6,
                       .d_hidden = 8,
                       .num_encoder_layers = 1,
                       .num_decoder_layers = 2,
                       .width = 3,
                       .max_len = 12},
                      rng) {
    for (Module* model :
         {static_cast<Module*>(&transformer), static_cast<Module*>(&recurrent), static_cast<Module*>(&convolutional)}) {
      make_noisy(*model, 2);
      to(*model, dtype);
    }
  }

  Decoders decoders(const Tensor& of_source) const {
    Decoders all;
    all.push_back(stepwise_decoder(transformer, of_source, 12));
    all.push_back(stepwise_decoder(recurrent, of_source, 12));
    all.push_back(stepwise_decoder(convolutional, of_source, 12));
    return all;
  }

  // The logarithm of the mean probability of each token after the whole target.
  Tensor whole(const Tensor& of_source, const Tensor& target) const {
    const NoGradient nothing_recorded;
    Pass pass = Pass::inference();
    const Variable mean = (softmax(transformer(of_source, target, pass)) + softmax(recurrent(of_source, target, pass)) +
                           softmax(convolutional(of_source, target, pass))) *
                          (1.0 / 3);
    return log(slice(mean, 1, target.size(1) - 1)).value().reshape({target.size(0), words});
  }
};

// Says the same after every token.
class Constant : public StepwiseDecoder {
 public:
  Constant(std::vector<double> probabilities, Dtype dtype) : probabilities_(std::move(probabilities)), dtype_(dtype) {}
  Tensor next_logits(const Tensor& tokens) override {
    std::vector<double> logits;
    for (i64 row = 0; row < tokens.size(0); ++row)
      for (const double p : probabilities_) logits.push_back(std::log(p) + 7);  // 7 more for all changes nothing
    return Tensor::of<double>({tokens.size(0), std::ssize(probabilities_)}, logits).to(dtype_);
  }
  void choose(std::span<const i64>) override {}

 private:
  std::vector<double> probabilities_;
  Dtype dtype_;
};

Tensor said_by(const std::vector<std::vector<double>>& models, Dtype dtype = f64) {
  Decoders decoders;
  for (const std::vector<double>& probabilities : models)
    decoders.push_back(std::make_unique<Constant>(probabilities, dtype));
  return ensemble_of(std::move(decoders))->next_logits(Tensor::of<i32>({1, 1}, {1}));
}

}  // namespace

TEST_CASE("an ensemble takes the token that all find likely, though each alone would take another") {
  const Tensor logits = said_by({{0.5, 0.1, 0.4}, {0.1, 0.5, 0.4}});
  CHECK(distance(logits, Tensor::of<double>({1, 3}, {std::log(0.3), std::log(0.3), std::log(0.4)})) < 1e-14);
}

TEST_CASE("what every model finds impossible stays impossible, and one that does not is heard") {
  for (const Dtype dtype : {f64, f32}) {
    // In f32, e^-200 is 0 too.
    const Tensor logits = said_by({{std::exp(-200), 0, 0.5, 0.5}, {0, 0, 1, 0}}, dtype);
    CHECK((logits.at(0) == -INFINITY) == (dtype == f32));
    CHECK(logits.at(1) == -INFINITY);
    CHECK(logits.at(2) == doctest::Approx(std::log(0.75)));
    CHECK(logits.at(3) == doctest::Approx(std::log(0.25)));
  }
}

TEST_CASE("step by step, with chosen sequences, an ensemble says the mean of what its models say of whole targets") {
  for (const Dtype dtype : {f64, f32}) {
    const Models models(dtype);
    const auto decoder = ensemble_of(models.decoders(three_sources));
    const Tensor first = three_sources.rows(0, 1), last = three_sources.rows(2, 3);
    const Tensor tokens = Tensor::of<i32>({3, 1}, {1, 1, 1});
    CHECK(relative(decoder->next_logits(tokens), models.whole(three_sources, tokens)) < bound(dtype));
    decoder->choose(std::vector<i64>{0, 0, 2, 2});
    CHECK(relative(decoder->next_logits(Tensor::of<i32>({4, 1}, {5, 6, 7, 8})),
                   models.whole(concat({first, first, last, last}, 0),
                                Tensor::of<i32>({4, 2}, {1, 5, 1, 6, 1, 7, 1, 8}))) < bound(dtype));
    decoder->choose(std::vector<i64>{1, 2});
    CHECK(relative(decoder->next_logits(Tensor::of<i32>({2, 1}, {9, 10})),
                   models.whole(concat({first, last}, 0), Tensor::of<i32>({2, 3}, {1, 6, 9, 1, 7, 10}))) <
          bound(dtype));
  }
}

TEST_CASE("an ensemble needs a model, and models of one vocabulary") {
  CHECK(small::error_of([] { ensemble_of({}); }) == "ensemble: needs a model");
  CHECK(small::error_of([] {
          said_by({{0.5, 0.5}, {1, 1, 1}});
        }) == "ensemble: model 1 has probabilities [1, 2], model 2 [1, 3]");
}
