// Chapter 9. Pictures: drawn from their data as the repository holds them, wrong data refused; SVG and charts.
#include "apps/show/figure/figures.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/show/figure/svg.h"
#include "core/files/json.h"
#include "tests/apps/chromium.h"
#include "tests/core/support.h"
#include "tests/text.h"

using namespace orrery;

namespace {

std::string data_of(const std::string& name) { return contents(style::root / "apps/data" / (name + ".json")); }

}  // namespace

#ifndef ORRERY_SANITIZED  // whose compiler rounds the last digit of a place differently
TEST_CASE("the committed pictures are what the program draws") {
  CHECK(pictures().size() >= 4);
  for (const auto& [name, draw_picture] : pictures()) {
    const std::string& shown = name;
    CAPTURE(shown);
    CHECK(draw_picture(data_of(name)) == contents(style::root / "apps/book/figures" / (name + ".svg")));
  }
}
#endif

TEST_CASE("every head goes to JSON and back, rounded, and wrong counts are one clear error") {
  HeadsFigure figure{.task = "copy",
                     .source = {"a", "b"},
                     .input = {"^", "a", "b"},
                     .written = {"a", "b", "."},
                     .encoder = {{.layer = 1, .head = 2, .weights = {{0.126, 0.874}, {1, 0}}}},
                     .decoder_self = {{.weights = {{1, 0, 0}, {0.5, 0.5, 0}, {0, 0, 1}}}},
                     .decoder_cross = {{.weights = {{1, 0}, {0, 1}, {0, 1}}}}};
  const HeadsFigure back = heads_figure(to_json(figure));
  CHECK(back.encoder[0].weights[0] == std::vector<double>{0.13, 0.87});
  CHECK(to_json(back) == to_json(figure));
  const std::string picture = draw(figure);
  CHECK(small::times(picture, "<rect class=\"mark\"") == 3 + 4 + 3);  // weights above 0
  CHECK(picture.find("layer 1, head 2") != picture.npos);
  const auto complaint = [](HeadsFigure wrong) { return small::error_of([&] { heads_figure(to_json(wrong)); }); };
  CHECK(complaint(figure) == "");
  HeadsFigure wrong = figure;
  wrong.encoder[0].weights.pop_back();
  CHECK(complaint(wrong) == "figure: layer 1, head 2 has 1 rows of weights for 2 symbols");
  wrong = figure;
  wrong.decoder_self.clear();
  CHECK(complaint(wrong) == "figure: has no maps of decoder self-attention");
  wrong = figure;
  wrong.decoder_self[0].weights[0][0] = 2;
  CHECK(complaint(wrong) == "figure: a weight must be from 0 to 1, not 2");
}

TEST_CASE("the heads of the trained toy do what chapter 7 says of them") {
  const HeadsFigure figure = heads_figure(data_of("toy_heads"));
  const bool as_written = to_json(figure) == data_of("toy_heads");
  CHECK(as_written);
  CHECK(figure.decoder_cross.size() == 8);
  const auto strongest = [](const std::vector<double>& row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  const i64 length = static_cast<i64>(figure.source.size());
  for (const HeadMap& map : figure.decoder_cross) {
    CAPTURE(map.layer);
    CAPTURE(map.head);
    for (i64 i = 0; i < length; ++i) {
      if (map.layer == 1) CHECK(strongest(map.weights[static_cast<size_t>(i)]) == length - 1 - i);  // what comes next
      if (map.layer == 0 && map.head == 1)  // what was written last
        CHECK(strongest(map.weights[static_cast<size_t>(i) + 1]) == length - 1 - i);
    }
  }
  for (const HeadMap& map : figure.encoder)  // a little of everything
    for (const std::vector<double>& row : map.weights) CHECK(*std::max_element(row.begin(), row.end()) < 0.33);
  const AttentionFigure sharpest = attention_figure(data_of("attention"));
  CHECK(sharpest.read == figure.source);
  CHECK(sharpest.written == figure.written);
  for (const HeadMap& map : figure.decoder_cross)
    if (map.layer == sharpest.layer && map.head == sharpest.head) CHECK(map.weights == sharpest.weights);
}

TEST_CASE("data of another kind are one clear error") {
  CHECK(small::error_of([] { attention_figure("[1"); }) ==
        "figure: is not valid JSON: the error is in line 1, column 3");
  CHECK(small::error_of([] { speed_figure("{}"); }) == "figure: has no field \"machine\"");
  CHECK(small::error_of([] { speed_figure(R"({"machine": "m", "rows": [{"config": "a", "pytorch_ms": 0}]})"); }) ==
        "figure: pytorch_ms must be positive, not 0");
  CHECK(small::error_of([] {
          attention_figure(
              R"({"task": "copy", "layer": 0, "head": 0, "written": ["a"], "read": ["a", "b"], "weights": [[1]]})");
        }) == "figure: has a row of 1 weights for 2 symbols read");
}

TEST_CASE("a training goes to JSON and back, rounded, and wrong counts are one clear error") {
  const LossFigure figure{.task = "sort",
                          .steps = 50,
                          .every = 25,
                          .guess = 2.5,
                          .least = 0.5654,
                          .loss = {3.00049, 0.6},
                          .accuracy = {0.1, 0.9999}};
  const LossFigure back = loss_figure(to_json(figure));
  CHECK(back.least == 0.565);
  CHECK(back.loss == std::vector<double>{3, 0.6});
  CHECK(back.accuracy == std::vector<double>{0.1, 1});
  CHECK(draw(back).find("The toy learns to sort: means of 25 steps") != std::string::npos);
  LossFigure shorter = figure;
  shorter.loss.pop_back();
  CHECK(small::error_of([&] { loss_figure(to_json(shorter)); }) ==
        "figure: has 1 losses and 2 accuracies for 2 points");
  LossFigure one_point = shorter;
  one_point.accuracy.pop_back();
  one_point.steps = 25;
  CHECK(small::error_of([&] { loss_figure(to_json(one_point)); }) ==
        "figure: has one point, and a curve needs two: train for more than 25 steps");
}

TEST_CASE("the weights of the longest sequences that toy takes are read") {
  constexpr size_t longest = 512;
  const AttentionFigure figure{.task = "copy",
                               .written = std::vector<std::string>(longest, "13"),
                               .read = std::vector<std::string>(longest, "13"),
                               .weights = std::vector(longest, std::vector<double>(longest, 0.25))};
  CHECK(attention_figure(to_json(figure)).weights == figure.weights);
}

TEST_CASE("shapes and texts become elements in their order") {
  Svg svg(100, 50.5, "A & B");
  svg.rectangle(1, 2, 3, 4, Ink::mark, 0.25);
  svg.line(0, 0, 9.999, 1, Ink::frame);
  svg.text(5, 6, "x < y", Ink::note, 11, Anchor::end);
  const std::string text = svg.str();
  CHECK(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"50.5\""));
  CHECK(text.find("<title>A &amp; B</title>") != text.npos);
  CHECK(text.find("prefers-color-scheme: dark") != text.npos);
  CHECK(
      text.ends_with("<rect class=\"mark\" x=\"1\" y=\"2\" width=\"3\" height=\"4\" fill-opacity=\"0.25\"/>\n"
                     "<path class=\"frame line\" d=\"M0 0 L10 1\"/>\n"
                     "<text class=\"note\" x=\"5\" y=\"6\" font-size=\"11\" text-anchor=\"end\">x &lt; y</text>\n"
                     "</svg>\n"));
}

TEST_CASE("a coordinate that is not a number is an error") {
  Svg svg(10, 10, "");
  CHECK(small::error_of([&] { svg.line(0, 0, std::numeric_limits<double>::quiet_NaN(), 1, Ink::frame); }) ==
        "figure: a coordinate is not finite");
}

TEST_CASE("foreign words send no commands to a terminal on which a picture is printed") {
  Svg svg(10, 10, "a\x1B[31m");
  svg.text(1, 2, "b\n\x1B\xC2\x9B", Ink::note);
  CHECK(svg.str().find("<title>a?[31m</title>") != std::string::npos);
  // In two pieces, since ??< in one would be a trigraph.
  CHECK(svg.str().find(">b\\n?"
                       "?</text>") != std::string::npos);
}

TEST_CASE("browser: a picture that is opened by itself lies on a dark page where the browser prefers dark") {
  Svg svg(200, 100, "title");
  svg.text(10, 50, "light letters", Ink::text);
  const std::string dark = browser::corner_of("picture.svg", svg.str(), true),
                    light = browser::corner_of("picture.svg", svg.str(), false);
  CHECK(light == "255,255,255");
  REQUIRE(!dark.empty());
  CHECK(std::stoi(dark) < 64);
}

TEST_CASE("places are linear, and end at the frame") {
  Svg svg(300, 200, "");
  Chart chart(svg, {.x = 50, .y = 20, .width = 200, .height = 100},
              {.name = "step", .low = 0, .high = 20, .ticks = {{10, "ten"}}},
              {.name = "loss", .low = -1, .high = 3, .ticks = {{0, "zero"}}});
  CHECK(chart.place(10, 1).x == 150);
  CHECK(chart.place(10, 1).y == 70);
  CHECK(chart.place(1000, -7).x == 250);
  CHECK(chart.place(1000, -7).y == 120);
  chart.curve({{0, -1}, {10, 3}}, Ink::mark);
  const std::string text = svg.str();
  CHECK(text.find("<path class=\"mark line\" d=\"M50 120 L150 20\" stroke-width=\"2\"/>") != text.npos);
  for (const std::string words : {">ten<", ">zero<", ">step<", ">loss<"}) CHECK(text.find(words) != text.npos);
}

TEST_CASE("an axis without length is an error") {
  Svg svg(100, 100, "");
  const Area area{.width = 10, .height = 10};
  CHECK(small::error_of([&] { Chart(svg, area, {.name = "x", .low = 1, .high = 1}, {}); }) ==
        "figure: the axis 'x' from 1 to 1 has no length");
}
