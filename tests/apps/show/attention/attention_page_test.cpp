// Chapter 9. The attention page: its numbers are the weights, its labels the tokens, and it refuses what does not fit.
#include "apps/show/attention/attention_page.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/apps/show/attention/random_attention.h"
#include "tests/core/support.h"

using namespace orrery;
using small::check_weights;

namespace {

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("the page's data are the weights with four digits, with the tokens of rows and columns") {
  const AttentionMaps maps = small::random_maps(4, 3);
  const Labels source{"a", "</b>", "\"c\"", "\xFF"}, input{"^", "x", "y"}, written{"x", "y", "."};
  AttentionPage page("Title", "About <it>");
  page.add("a b c d", "x y", shown_attentions(maps, source, input, written));
  page.add("e", "z", shown_attentions(maps, source, input, written));
  CHECK(page.pairs() == 2);
  const std::string text = page.json();
  CHECK(text.find('<') == text.npos);
  const nlohmann::json data = nlohmann::json::parse(text);
  CHECK(data.at("title") == "Title");
  CHECK(data.at("about") == "About <it>");
  REQUIRE(data.at("pairs").size() == 2);
  CHECK(data["pairs"][1].at("source") == "e");
  const nlohmann::json& pair = data["pairs"][0];
  CHECK(pair.at("source") == "a b c d");
  CHECK(pair.at("target") == "x y");
  const nlohmann::json& shown = pair.at("attentions");
  REQUIRE(shown.size() == 3);
  CHECK(shown[0].at("name") == "encoder self-attention");
  CHECK(shown[1].at("name") == "decoder self-attention");
  CHECK(shown[2].at("name") == "cross-attention");
  CHECK(shown[0].at("rows") == nlohmann::json{"a", "</b>", "\"c\"", "\xEF\xBF\xBD"});
  CHECK(shown[0].at("columns") == shown[0].at("rows"));
  CHECK(shown[1].at("rows") == nlohmann::json(input));
  CHECK(shown[2].at("rows") == nlohmann::json(written));
  CHECK(shown[2].at("columns") == shown[0].at("rows"));
  CHECK(shown[0].at("causal") == false);
  CHECK(shown[1].at("causal") == true);
  REQUIRE(shown[0].at("layers").size() == 2);
  REQUIRE(shown[2].at("layers").size() == 1);
  check_weights(shown[0]["layers"][0], maps.encoder[0], 4, 4);
  check_weights(shown[0]["layers"][1], maps.encoder[1], 4, 4);
  check_weights(shown[1]["layers"][0], maps.decoder_self[0], 3, 3);
  check_weights(shown[2]["layers"][0], maps.decoder_cross[0], 3, 4);
  const std::string html = page.html();
  CHECK(html.find(text) != html.npos);
}

TEST_CASE("a model without attention in its encoder shows the attention it has; padding is left out") {
  const AttentionMaps cross{.encoder = {}, .decoder_self = {}, .decoder_cross = {small::random_weights(1, 2, 5, 1)}};
  AttentionPage page("", "");
  page.add("", "", shown_attentions(cross, {"a", "b", "c"}, {}, {"x"}));
  const nlohmann::json shown = nlohmann::json::parse(page.json()).at("pairs").at(0).at("attentions");
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].at("layers").at(0).at(0).size() == 1);
  CHECK(shown[0].at("layers").at(0).at(0).at(0).size() == 3);
}

TEST_CASE("a page has room for twenty pairs and four million weights, and refuses what does not fit") {
  AttentionPage page("", "");
  CHECK(page.has_room(AttentionPage::most_weights));
  CHECK_FALSE(page.has_room(AttentionPage::most_weights + 1));
  const auto one = shown_attentions(small::random_maps(1, 1), {"a"}, {"^"}, {"."});
  for (int i = 0; i < 20; ++i) page.add("", "", one);
  CHECK_FALSE(page.has_room(1));
  CHECK(small::contains(small::error_of([&] { page.add("", "", one); }), "holds at most 20 pairs"));
  AttentionPage another("", "");
  CHECK(small::contains(small::error_of([&] {
                          another.add("", "", shown_attentions(small::random_maps(1, 1), {"a", "b"}, {"^"}, {"."}));
                        }),
                        "do not fit 2 rows and 2 columns"));
  AttentionMaps broken = small::random_maps(1, 1);
  broken.decoder_cross[0](0, 0, 0, 0) = NAN;
  CHECK(small::error_of([&] { another.add("", "", shown_attentions(broken, {"a"}, {"^"}, {"."})); }) ==
        "attention page: a weight is not finite");
}

TEST_CASE("a page of twenty long sentences of a model of 6 + 6 layers and 8 heads is below 20 MB") {
  const nn::TransformerConfig model{.layer = {.num_heads = 8}, .num_encoder_layers = 6, .num_decoder_layers = 6};
  CHECK(20 * attention_weights(model, 37, 37) <= AttentionPage::most_weights);
  CHECK(attention_weights(model, 2, 3) == 8 * 6 * (4 + 9 + 6));
  // Rows of 37 equal weights, each written as 270 (of 10,000), are about as long as such rows can be.
  const std::vector<std::string> labels(37, "token");
  AttentionMaps maps;
  for (auto* layers : {&maps.encoder, &maps.decoder_self, &maps.decoder_cross})
    *layers = {full({1, 8, 37, 37}, 1.0 / 37)};
  AttentionPage page("", "");
  page.add("", "", shown_attentions(maps, labels, labels, labels));
  CHECK(page.json().size() * 6 * 20 < 20'000'000);
}
