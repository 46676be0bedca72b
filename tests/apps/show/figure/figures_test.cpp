// Chapter 9. Pictures: drawn from their data as the repository holds them, and wrong data refused.
#include "apps/show/figure/figures.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/files/json.h"
#include "tests/core/support.h"
#include "tests/text.h"

using namespace orrery;

namespace {

std::string data_of(const std::string& name) { return contents(style::root / "apps/data" / (name + ".json")); }
std::string picture_of(const std::string& name) {
  return contents(style::root / "apps/book/figures" / (name + ".svg"));
}

}  // namespace

TEST_CASE("the committed pictures are what the program draws") {
  CHECK(pictures().size() >= 10);
  for (const auto& [name, picture] : pictures()) {
    const std::string& shown = name;
    CAPTURE(shown);
    CHECK(picture.draw(picture.needs_data ? data_of(name) : "") == picture_of(name));
  }
}

TEST_CASE("every committed picture is shown by a text or drawn by the program") {
  std::string texts = contents(style::root / "README.md");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(style::root / "apps"))
    if (entry.path().extension() == ".md") texts += contents(entry.path());
  for (const auto& entry : std::filesystem::directory_iterator(style::root / "apps/book/figures")) {
    const std::string file = entry.path().filename().string(), name = entry.path().stem().string();
    CAPTURE(file);
    const bool used = texts.find("figures/" + file) != texts.npos || pictures().contains(name);
    CHECK(used);
  }
}

TEST_CASE("a row of weights is a row of cells") {
  const AttentionFigure figure{.task = "copy",
                               .layer = 1,
                               .head = 2,
                               .written = {"b", "."},
                               .read = {"b", "c", "d"},
                               .weights = {{1, 0, 0.126}, {0, 0.5, 0}}};
  CHECK(attention_figure(to_json(figure)).weights[0][2] == 0.13);
  const std::string picture = draw(figure);
  CHECK(small::times(picture, "<rect class=\"frame\"") == 6);
  CHECK(small::times(picture, "<rect class=\"mark\"") == 3);
  CHECK(picture.find("fill-opacity=\"0.5\"") != picture.npos);
  CHECK(picture.find("task: copy; decoder layer 1, head 2") != picture.npos);
}

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
  wrong.decoder_cross[0].weights[1].push_back(0);
  CHECK(complaint(wrong) == "figure: layer 0, head 0 has a row of 3 weights for 2 symbols");
  wrong = figure;
  wrong.decoder_self.clear();
  CHECK(complaint(wrong) == "figure: has no maps of decoder self-attention");
  wrong = figure;
  wrong.decoder_self[0].weights[0][0] = 2;
  CHECK(complaint(wrong) == "figure: a weight must be from 0 to 1, not 2");
  wrong = figure;
  wrong.source.clear();
  CHECK(complaint(wrong) == "figure: has no symbols");
}

TEST_CASE("the picture of the translators has the validation losses of their logs") {
  const TranslatorsFigure figure = translators_figure(data_of("translators"));
  std::map<std::string, int> seeds;
  for (const TranslatorCurve& curve : figure.curves) {
    const std::string log = curve.model + std::to_string(++seeds[curve.model]) + ".jsonl";
    CAPTURE(log);
    std::vector<double> losses;
    for (const std::string& line : style::lines_of("apps/tasks/translate/multi30k/" + log)) {
      const Json json = Json::parse(line);
      if (json.contains("validation")) losses.push_back(std::round(json["validation"].get<double>() * 1000) / 1000);
    }
    CHECK(losses == curve.losses);
    CHECK(std::is_sorted(curve.minutes.begin(), curve.minutes.end()));
  }
  CHECK(seeds.size() == 3);
}

TEST_CASE("curves of translators are drawn with their names, and wrong ones are one clear error") {
  const auto drawn = [](const std::string& curves) {
    return draw(translators_figure("{\"note\": \"two seeds\", \"curves\": [" + curves + "]}"));
  };
  const std::string one = R"({"model": "recurrent", "minutes": [1, 2], "losses": [3.5, 2.5]})";
  const std::string picture = drawn(one + ", " + one);
  CHECK(small::times(picture, ">recurrent<") == 1);
  CHECK(picture.find(">two seeds<") != picture.npos);
  const auto complaint = [&](const std::string& curves) { return small::error_of([&] { drawn(curves); }); };
  CHECK(complaint("") == "figure: has no curves");
  CHECK(complaint(R"({"model": "gpt", "minutes": [1, 2], "losses": [3.5]})") ==
        "figure: a curve of gpt has 2 times and 1 losses");
  CHECK(complaint(R"({"model": "gpt", "minutes": [1, 2], "losses": [3.5, -1]})") == "figure: a loss of -1");
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
  CHECK(small::error_of([] { speed_figure(R"({"machine": "m", "rows": [1]})"); }) ==
        "figure: rows 1: is not a JSON object");
  CHECK(small::error_of([] { speed_figure(R"({"machine": "m", "rows": 1})"); }) ==
        "figure: rows must be a list, not 1");
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
  LossFigure timeless = figure;
  timeless.every = 0;
  CHECK(small::error_of([&] { loss_figure(to_json(timeless)); }) == "figure: has means of 0 steps of 50");
  CHECK(small::error_of([&] {
          LossFigure endless = figure;
          endless.loss[0] = 1e9;
          loss_figure(to_json(endless));
        }) == "figure: loss must be from 0 to 1000, not 1e+09");
}

TEST_CASE("every number of a picture has its range") {
  const auto complaint = [](const std::string& layer, const std::string& head, const std::string& weight) {
    return small::error_of([&] {
      attention_figure(R"({"task": "copy", "layer": )" + layer + R"(, "head": )" + head +
                       R"(, "written": ["a"], "read": ["a"], "weights": [[)" + weight + "]]}");
    });
  };
  CHECK(complaint("1", "0", "0.5") == "");
  CHECK(complaint("1.7", "0", "1") == "figure: layer must be a whole number from 0 to 1000, not 1.7");
  CHECK(complaint("1", "-1e300", "1") == "figure: head must be a whole number from 0 to 1000, not -1e+300");
  CHECK(complaint("1", "0", "1.5") == "figure: a weight must be from 0 to 1, not 1.5");
  CHECK(complaint("1", "0", "\"1\"") == "figure: weights must be a number, not \"1\"");
}

TEST_CASE("the weights of the longest sequences that toy takes are read") {
  constexpr size_t longest = 512;
  const AttentionFigure figure{.task = "copy",
                               .written = std::vector<std::string>(longest, "13"),
                               .read = std::vector<std::string>(longest, "13"),
                               .weights = std::vector(longest, std::vector<double>(longest, 0.25))};
  CHECK(attention_figure(to_json(figure)).weights == figure.weights);
}
