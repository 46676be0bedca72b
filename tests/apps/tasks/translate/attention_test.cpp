// Chapter 9. The page of a translator's attention: its weights are those of the model's own forward pass.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "apps/tasks/translate/decode.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoding.h"
#include "tests/apps/show/attention/random_attention.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::translate;

namespace {

Translator new_translator(ModelKind kind) {
  const Vocabulary vocabulary = Vocabulary::of_segmented({"a b c d e"});
  const i64 K = vocabulary.size();
  Rng rng(3);
  const auto made = [&](auto model) {
    return Translator{vocabulary, std::make_unique<TranslatorOf<decltype(model)>>(std::move(model))};
  };
  if (kind == ModelKind::recurrent) {
    RecurrentTranslatorConfig config{};
    config.src_vocab_size = config.tgt_vocab_size = K;
    config.pad_id = pad_id;
    config.d_embedding = config.d_encoder = config.d_attention = 8;
    config.d_decoder = 12;
    return made(RecurrentTranslator(config, rng));
  }
  if (kind == ModelKind::convolutional) {
    ConvolutionalTranslatorConfig config{};
    config.src_vocab_size = config.tgt_vocab_size = K;
    config.pad_id = pad_id;
    config.max_len = 40;
    config.d_embedding = 8;
    config.d_hidden = 12;
    config.num_encoder_layers = 1;
    config.num_decoder_layers = 2;
    return made(ConvolutionalTranslator(config, rng));
  }
  nn::TransformerConfig config{.src_vocab_size = K, .tgt_vocab_size = K};
  config.layer = {.d_model = 12, .num_heads = 2, .d_ff = 8};
  config.num_encoder_layers = 1;
  config.num_decoder_layers = 2;
  config.max_len = 40;
  config.pad_id = pad_id;
  return made(nn::Transformer(config, rng));
}

// The weights in the page, layer by layer, against those of layers [1, h, n, m].
void check_shown(const nlohmann::json& shown, const std::vector<Tensor>& layers, i64 rows, i64 columns) {
  REQUIRE(shown.at("layers").size() == layers.size());
  REQUIRE(shown.at("rows").size() == static_cast<size_t>(rows));
  REQUIRE(shown.at("columns").size() == static_cast<size_t>(columns));
  for (size_t layer = 0; layer < layers.size(); ++layer)
    small::check_weights(shown["layers"].at(layer), layers[layer], rows, columns);
}

}  // namespace

TEST_CASE("the page's weights are those of the Transformer's own pass over the pair") {
  const Translator translator = new_translator(ModelKind::transformer);
  const std::vector<i32> a_b = translator.vocabulary.ids("a b c"), written{a_b[1], a_b[0], end_id};
  AttentionPage page = attention_page(translator);
  REQUIRE(add_attention(page, translator, "a b c", written));
  CHECK(small::error_of([&] { add_attention(page, translator, "a", {}); }) ==
        "translate: there is no attention of a translation without tokens");
  const auto& model = dynamic_cast<const TransformerTranslator&>(*translator.model).model;
  const AttentionMaps maps = attention_maps(model, Tensor::of<i32>({1, 4}, {a_b[0], a_b[1], a_b[2], end_id}),
                                            Tensor::of<i32>({1, 3}, {begin_id, a_b[1], a_b[0]}));
  const nlohmann::json data = nlohmann::json::parse(page.json()), pair = data.at("pairs").at(0);
  CHECK(data.at("about").get<std::string>().starts_with("A transformer model of "));
  CHECK(pair.at("source") == "a b c");
  CHECK(pair.at("target") == "b a");
  const nlohmann::json& shown = pair.at("attentions");
  REQUIRE(shown.size() == 3);
  check_shown(shown[0], maps.encoder, 4, 4);
  check_shown(shown[1], maps.decoder_self, 3, 3);
  check_shown(shown[2], maps.decoder_cross, 3, 4);
  CHECK(shown[2].at("columns") == nlohmann::json{"a", "b", "c", translator.vocabulary.token(end_id)});
  CHECK(shown[1].at("rows") == nlohmann::json{translator.vocabulary.token(begin_id), "b", "a"});
  CHECK(shown[2].at("rows") == nlohmann::json{"b", "a", translator.vocabulary.token(end_id)});
}

TEST_CASE("what the other models attend to is shown as well, and each model counts its weights") {
  const Tensor source = Tensor::of<i32>({1, 5}, {7, 8, 9, 10, end_id}),
               target = Tensor::of<i32>({1, 3}, {begin_id, 8, 9});
  for (const ModelKind kind : {ModelKind::transformer, ModelKind::recurrent, ModelKind::convolutional}) {
    CAPTURE(name_of(kind));
    const Translator translator = new_translator(kind);
    const AttentionMaps maps = translator.model->attention(source, target);
    i64 count = 0;
    for (const auto* layers : {&maps.encoder, &maps.decoder_self, &maps.decoder_cross})
      for (const Tensor& layer : *layers) {
        count += layer.count();
        double sum = 0;
        for (i64 i = 0; i < layer.count(); ++i) sum += layer.at(i);
        CHECK(sum == doctest::Approx(layer.count() / layer.size(3)));  // each row adds up to 1
      }
    CHECK(count == translator.model->attention_weights(5, 3));
    AttentionPage page = attention_page(translator);
    REQUIRE(add_attention(page, translator, "a b", std::vector<i32>{8, 9}));
    const nlohmann::json pair = nlohmann::json::parse(page.json()).at("pairs").at(0);
    CHECK(pair.at("target") == "b c");  // it was cut off before its end
    CHECK(pair.at("attentions").size() == (kind == ModelKind::transformer ? 3 : 1));
    CHECK(pair["attentions"].back().at("layers").size() == (kind == ModelKind::recurrent ? 1 : 2));
  }
}
