// Chapter 7. An ensemble of three kinds of models: against the mean of what each says of the whole target.
#include "nn/generate/ensemble.h"

#include <doctest/doctest.h>

#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "autograd/ops.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::nn;
using namespace orrery::translate;

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

TEST_CASE("an ensemble of one model finds what the model finds") {
  const Models models;
  const std::vector<i64> limits{9, 9, 9};
  const BeamOptions options{.beam = 2, .max_len = 9};
  const auto alone = beam_search(*stepwise_decoder(models.transformer, three_sources, 12), limits, options);
  Decoders one;
  one.push_back(stepwise_decoder(models.transformer, three_sources, 12));
  const auto together = beam_search(*ensemble_of(std::move(one)), limits, options);
  for (size_t i = 0; i < alone.size(); ++i) {
    CHECK(together[i].tokens == alone[i].tokens);
    CHECK(std::abs(together[i].log_probability - alone[i].log_probability) < 1e-11);
  }
}

TEST_CASE("an ensemble needs a model, and models of one vocabulary") {
  CHECK(small::error_of([] { ensemble_of({}); }) == "ensemble: needs a model");
  CHECK(small::error_of([] {
          said_by({{0.5, 0.5}, {1, 1, 1}});
        }) == "ensemble: model 1 has probabilities [1, 2], model 2 [1, 3]");
}
