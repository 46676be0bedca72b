// Chapter 7. The configurations of the rivals: JSON there and back, counts, errors.
#include <doctest/doctest.h>

#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::nn;
using namespace orrery::translate;

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
  CHECK(recurrent_translator_config(to_json(recurrent)) == recurrent);
  CHECK(convolutional_translator_config(to_json(convolutional)) == convolutional);
  const RecurrentTranslatorConfig r =
      recurrent_translator_config(R"({"src_vocab_size": 9, "tgt_vocab_size": 8, "d_decoder": 3})");
  CHECK(r == RecurrentTranslatorConfig{.src_vocab_size = 9, .tgt_vocab_size = 8, .d_decoder = 3});
  const ConvolutionalTranslatorConfig c =
      convolutional_translator_config(R"({"src_vocab_size": 9, "tgt_vocab_size": 8, "width": 1})");
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
  const auto of_recurrent = [](auto change) {
    RecurrentTranslatorConfig config = recurrent;
    change(config);
    return small::error_of([&] { config.validate(); });
  };
  const auto of_convolutional = [](auto change) {
    ConvolutionalTranslatorConfig config = convolutional;
    change(config);
    return small::error_of([&] { config.validate(); });
  };
  CHECK(of_recurrent([](auto&) {}) == "");
  CHECK(of_recurrent([](auto& c) { c.d_attention = 0; }) ==
        "recurrent translator config: d_attention must be positive, not 0");
  CHECK(of_recurrent([](auto& c) { c.d_output = -1; }) ==
        "recurrent translator config: d_output must be positive, or 0 for none, not -1");
  CHECK(of_recurrent([](auto& c) { c.max_len = 0; }) == "recurrent translator config: max_len must be positive, not 0");
  CHECK(of_recurrent([](auto& c) { c.output_dropout = 1; }) ==
        "recurrent translator config: output_dropout must be in [0, 1), not 1");
  CHECK(of_recurrent([](auto& c) { c.pad_id = 30; }) ==
        "recurrent translator config: pad_id (30) must be below both vocabulary sizes (30 and 30)");
  CHECK(of_recurrent([](auto& c) { c.pad_id = -2; }) ==
        "recurrent translator config: pad_id must be a token's id, or -1 for none, not -2");
  CHECK(of_convolutional([](auto&) {}) == "");
  CHECK(of_convolutional([](auto& c) { c.width = 4; }) ==
        "convolutional translator config: width must be odd and positive, not 4");
  CHECK(of_convolutional([](auto& c) { c.max_len = 0; }) ==
        "convolutional translator config: max_len must be positive, not 0");
  CHECK(of_convolutional([](auto& c) { c.tgt_vocab_size = 31; }) ==
        "convolutional translator config: share_embeddings needs one vocabulary, but the sizes are 30 and 31");
  CHECK(small::error_of([] { recurrent_translator_config(R"({"src_vocab_size": 9, "d_model": 8})"); }) ==
        "recurrent translator config: there is no field \"d_model\"");
}
