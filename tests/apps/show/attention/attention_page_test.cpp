// Chapter 9. The attention page: its numbers are the weights, its labels the tokens, it refuses what does not fit; and
// in headless Chromium its cells and their words, and the answers to keys and mouse.
#include "apps/show/attention/attention_page.h"

#include <doctest/doctest.h>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/apps/chromium.h"
#include "tests/apps/show/attention/random_attention.h"
#include "tests/core/support.h"

using namespace orrery;
using browser::text_of_id;
using program::contains;
using program::times;
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

namespace {

AttentionPage two_pairs() {
  AttentionPage page("Attention of <b>", "about it");
  page.add("a b c", "x y",
           shown_attentions(small::random_maps(4, 3), {"a", "b", "c", "."}, {"^", "x", "y"}, {"x", "y", "."}));
  page.add("d", "z", shown_attentions(small::random_maps(2, 2), {"d", "."}, {"^", "z"}, {"z", "."}));
  return page;
}

// The page as Chromium leaves it, after `script` has run: neither the data nor the scripts, only what they made.
std::string attention_dom(const std::string& fragment, const std::string& script = "") {
  std::string page = two_pairs().html();
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
  const std::string dom = browser::dom_of_page(page, fragment);
  return dom.substr(0, dom.find("<script id=\"page-data\""));
}

std::string key(const std::string& name) {
  return "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '" + name + "', bubbles: true}));";
}

}  // namespace

TEST_CASE("browser: the page has a cell for each weight of the head, which says its tokens and its four digits") {
  const std::string dom = attention_dom("#sentence=1&attention=3&layer=0&head=1");
  CHECK(text_of_id(dom, "title") == "Attention of <b>");
  CHECK(text_of_id(dom, "chosen-title") == "cross-attention, layer 0, head 1");
  CHECK(text_of_id(dom, "source") == "a b c");
  CHECK(text_of_id(dom, "target") == "x y");
  CHECK(times(dom, "data-tip=") == 12);
  const Tensor weights = small::random_maps(4, 3).decoder_cross[0];
  const std::vector<std::string> rows{"x", "y", "."}, columns{"a", "b", "c", "."};
  for (i64 i = 0; i < 3; ++i)
    for (i64 j = 0; j < 4; ++j) {
      char digits[16];
      std::snprintf(digits, sizeof digits, "%.4f", weights(0, 1, i, j));
      CHECK(contains(dom, "data-tip=\"" + rows[static_cast<size_t>(i)] + " reads " + columns[static_cast<size_t>(j)] +
                              ": " + digits + "\""));
    }
}

TEST_CASE("browser: all heads of an attention are drawn small, and the causal part of the decoder's is hatched") {
  const std::string encoder = attention_dom("#sentence=1&attention=1&layer=1&head=2");
  CHECK(times(encoder, "<canvas") == 6);
  CHECK(times(encoder, "data-tip=") == 16);
  CHECK(contains(encoder, "aria-label=\"layer 1, head 2\" data-layer=\"1\" data-head=\"2\" aria-pressed=\"true\""));
  CHECK(times(encoder, "<option") == 2);
  const std::string decoder = attention_dom("#sentence=1&attention=2");
  CHECK(times(decoder, "class=\"hidden\"") == 3);
  CHECK(contains(decoder, "data-tip=\"^ cannot see y\""));
  // The strength of a pixel is the weight.
  const std::string pixel = attention_dom(
      "#sentence=1&attention=3&layer=0&head=0",
      "document.title = document.querySelector('canvas').getContext('2d').getImageData(2, 1, 1, 1).data[3];");
  const double weight = small::random_maps(4, 3).decoder_cross[0](0, 0, 1, 2);
  CHECK(std::abs(std::stod(pixel.substr(pixel.find("<title>") + 7)) - 255 * weight) <= 1);
}

TEST_CASE("browser: keys move through heads, layers, attentions and sentences, and stop at the ends") {
  const auto title_after = [](const std::string& fragment, const std::string& keys) {
    return text_of_id(attention_dom(fragment, keys), "chosen-title");
  };
  CHECK(title_after("", "") == "cross-attention, layer 0, head 0");
  CHECK(title_after("", key("ArrowRight")) == "cross-attention, layer 0, head 1");
  CHECK(title_after("#attention=1&layer=1&head=2", key("ArrowRight") + key("ArrowDown")) ==
        "encoder self-attention, layer 1, head 2");
  CHECK(title_after("#attention=1", key("ArrowDown") + key("ArrowRight") + key("ArrowLeft")) ==
        "encoder self-attention, layer 1, head 0");
  CHECK(title_after("#attention=1&layer=1&head=2", key("2")) == "decoder self-attention, layer 0, head 2");
  const std::string second = attention_dom("", key("n") + key("N"));
  CHECK(text_of_id(second, "source") == "d");
  CHECK(times(second, "data-tip=") == 4);
  CHECK(text_of_id(attention_dom("#sentence=2", key("p")), "source") == "a b c");
  CHECK(text_of_id(attention_dom("#sentence=99&attention=7&layer=8&head=9"), "chosen-title") ==
        "cross-attention, layer 0, head 2");
}

TEST_CASE("browser: the page of attention is dark where the browser prefers dark") {
  const std::string page = two_pairs().html();
  CHECK(browser::corner_of("page.html", page, false) == "255,255,255");
  CHECK(browser::corner_of("page.html", page, true) == "13,17,23");
}

TEST_CASE("browser: a head is chosen with the mouse, and a weight is shown beside it") {
  const std::string clicked =
      attention_dom("#attention=1", "document.querySelector('[data-layer=\"1\"][data-head=\"1\"]').click();");
  CHECK(text_of_id(clicked, "chosen-title") == "encoder self-attention, layer 1, head 1");
  const std::string pointed = attention_dom(
      "#attention=3",
      "document.querySelector('#weights td').dispatchEvent(new MouseEvent('mousemove', {bubbles: true}));");
  CHECK(text_of_id(pointed, "tip").starts_with("x reads a: 0."));
  CHECK(pointed.find("id=\"tip\" role=\"tooltip\" hidden") == pointed.npos);
  CHECK(times(pointed, "class=\"read\"") == 2);
}
