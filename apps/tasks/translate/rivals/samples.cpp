// Chapter 7. The rows of the rivals in the table of proofs: their layers and the translators made of them.
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/layout.h"
#include "nn/check/sample_rows.h"

namespace orrery::translate {
namespace {

Sample gru_layer(std::string variant, Mask mask, bool reverse) {
  return nn::module_sample(
      "Gru", std::move(variant), {{2, 3, 4}}, [=](Rng& rng) { return Gru(4, 3, rng, reverse); },
      [=](const Gru& layer, const nn::Inputs& in) { return layer(in[0], mask); },
      {.padding = mask.has_padding() ? nn::padding_of_x() : Padding{}});
}

Sample gru_from_a_state() {
  return nn::module_sample(
      "Gru", "last state, from a given one", {{2, 3, 4}, {2, 3}}, [](Rng& rng) { return Gru(4, 3, rng); },
      [](const Gru& layer, const nn::Inputs& in) { return layer.last(layer(in[0], nn::lengths_3_and_2(), in[1])); },
      {.padding = {.places = {{"input 0", {3, 2}}}}});
}

Sample gru_in_both_directions() {
  return nn::module_sample(
      "BidirectionalGru", "padding", {{2, 3, 4}}, [](Rng& rng) { return BidirectionalGru(4, 2, rng); },
      [](const BidirectionalGru& layer, const nn::Inputs& in) {
        const auto [states, last] = layer(in[0], nn::lengths_3_and_2());
        return concat({reshape(last, {2, 1, 4}), states}, 1);
      },
      {.padding = {.places = {{"input 0", {3, 2}}}, .output = {4, 3}}});
}

Sample attentive_gru_layer() {
  return nn::module_sample(
      "AttentiveGru", "padding", {{2, 2, 4}, {2, 3}, {2, 3, 5}},
      [](Rng& rng) { return AttentiveGru({.in = 4, .H = 3, .M = 5, .A = 2}, rng); },
      [](const AttentiveGru& layer, const nn::Inputs& in) {
        const auto [states, contexts] = layer(in[0], in[1], in[2], nn::lengths_3_and_2());
        return concat({states, contexts}, 2);
      },
      {.padding = {.places = {{"input 2", {3, 2}}}}});
}

ConvolutionalTranslatorConfig small_convolutional(double dropout) {
  return {.src_vocab_size = 7,
          .tgt_vocab_size = 6,
          .d_embedding = 4,
          .d_hidden = 6,
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .dropout = dropout,
          .max_len = 5};
}

Sample convolutional_encoder_layer() {
  return nn::module_sample(
      "ConvolutionalEncoderLayer", "padding, dropout", {{2, 3, 6}},
      [](Rng& rng) { return ConvolutionalEncoderLayer(small_convolutional(0.2), rng); },
      [](const ConvolutionalEncoderLayer& layer, const nn::Inputs& in, nn::Pass& pass) {
        return layer(in[0], nn::lengths_3_and_2(), pass);
      },
      {.padding = nn::padding_of_x()});
}

// Keys and values are of the same sequence here.
ConvolutionalMemory memory_of(const Variable& x) { return {x, x * 0.5, nn::lengths_3_and_2()}; }

Sample convolutional_decoder_layer() {
  return nn::module_sample(
      "ConvolutionalDecoderLayer", "padding, dropout", {{2, 3, 6}, {2, 3, 4}, {2, 3, 4}},
      [](Rng& rng) { return ConvolutionalDecoderLayer(small_convolutional(0.2), rng); },
      [](const ConvolutionalDecoderLayer& layer, const nn::Inputs& in, nn::Pass& pass) {
        return layer(in[0], in[1], memory_of(in[2]), pass);
      },
      {.padding = {.places = {{"input 2", {3, 2}}}}});
}

Sample newest_positions() {
  return nn::module_sample(
      "ConvolutionalDecoderLayer", "the newest positions alone", {{2, 5, 6}, {2, 3, 4}, {2, 3, 4}},
      [](Rng& rng) { return ConvolutionalDecoderLayer(small_convolutional(0), rng); },
      [](const ConvolutionalDecoderLayer& layer, const nn::Inputs& in, nn::Pass& pass) {
        return layer.newest(in[0], in[1], memory_of(in[2]), pass);
      },
      {.padding = {.places = {{"input 2", {3, 2}}}}});
}

RecurrentTranslatorConfig small_recurrent(double dropout, i64 d_output = 0) {
  return {.src_vocab_size = 7,
          .tgt_vocab_size = 6,
          .d_embedding = 3,
          .d_encoder = 2,
          .d_decoder = 4,
          .d_attention = 3,
          .d_output = d_output,
          .dropout = dropout,
          .output_dropout = dropout};
}

template <class Config> Config with_shared_table(Config config) {
  config.tgt_vocab_size = config.src_vocab_size;
  config.share_embeddings = true;
  return config;
}

}  // namespace

const std::vector<Sample>& rival_samples() {
  static const std::vector<Sample> all{
      gru_layer("", Mask(), false),
      gru_layer("reverse, padding", nn::lengths_3_and_2(), true),
      gru_from_a_state(),
      gru_in_both_directions(),
      attentive_gru_layer(),
      convolutional_encoder_layer(),
      convolutional_decoder_layer(),
      newest_positions(),
      nn::translator<RecurrentTranslator>("RecurrentTranslator", "dropout", small_recurrent(0.2)),
      nn::translator_loss<RecurrentTranslator>("RecurrentTranslator", "loss, one table for all",
                                               with_shared_table(small_recurrent(0, 3))),
      nn::translator<ConvolutionalTranslator>("ConvolutionalTranslator", "dropout", small_convolutional(0.2)),
      nn::translator_loss<ConvolutionalTranslator>("ConvolutionalTranslator", "loss, one table for all",
                                                   with_shared_table(small_convolutional(0))),
  };
  return all;
}

}  // namespace orrery::translate
