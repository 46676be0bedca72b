// Chapter 9. The page: its data are those of the pass, and it needs nothing else.
#include "apps/show/trace/page.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

using namespace orrery;

namespace {

std::vector<double> shown_values(const Tensor& x) {
  std::vector<double> result;
  for (i64 i = 0; i < x.count(); ++i) result.push_back(shown(x.at(i)));
  return result;
}

}  // namespace

TEST_CASE("the page's data are the numbers of the pass, and hold nothing that could end their script element") {
  const ModelPass pass = traced_pass();
  const std::string text = trace_json(pass);
  CHECK(text.find('<') == text.npos);
  CHECK(text.find("\\u003cbos>") != text.npos);
  const nlohmann::json data = nlohmann::json::parse(text);
  CHECK(data.at("target").at(0) == "<bos>");
  REQUIRE(data.at("steps").size() == pass.steps.size());
  for (size_t i = 0; i < pass.steps.size(); ++i) {
    const TracedStep& step = pass.steps[i];
    const nlohmann::json& shown_step = data["steps"][i];
    CHECK(shown_step.at("number") == step.number);
    CHECK(shown_step.at("operation") == step.operation);
    CHECK(shown_step.at("box") == step.box);
    REQUIRE(shown_step.at("outputs").size() == step.outputs.size());
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      const nlohmann::json& output = shown_step["outputs"][j];
      CHECK(output.at("name") == step.outputs[j].name);
      CHECK(output.at("values").get<std::vector<double>>() == shown_values(step.outputs[j].value));
    }
  }
  for (size_t i = 0; i < pass.steps.size(); ++i) {
    REQUIRE(data["steps"][i].at("inside").size() == pass.steps[i].inside.size());
    for (size_t j = 0; j < pass.steps[i].inside.size(); ++j)
      CHECK(data["steps"][i]["inside"][j].at("values").get<std::vector<double>>() ==
            shown_values(pass.steps[i].inside[j].value));
    for (size_t j = 0; j < pass.steps[i].outputs.size(); ++j)
      CHECK(data["steps"][i]["outputs"][j].value("masked", std::vector<i64>{}) == pass.steps[i].outputs[j].masked);
  }
  REQUIRE(data.at("parameters").size() == pass.parameters.size());
  for (size_t i = 0; i < pass.parameters.size(); ++i)
    CHECK(data["parameters"][i].at("gradient").get<std::vector<double>>() == shown_values(pass.parameters[i].gradient));
}

TEST_CASE("the page has every box of the pass, and no address outside of it") {
  const ModelPass pass = traced_pass();
  const std::string page = trace_page(pass);
  std::set<std::string> drawn, traced;
  static const std::regex box("data-box=\"([^\"]+)\"");
  for (std::sregex_iterator at(page.begin(), page.end(), box), end; at != end; ++at) drawn.insert((*at)[1]);
  for (const TracedBox& each : pass.boxes) traced.insert(each.id);
  CHECK(drawn == traced);
  for (const std::string outside : {"http:", "https:", "//cdn", " src=", "<link", "@import", "url(\"", "/* page."}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == page.npos);
  }
  CHECK(page.find(trace_json(pass)) != page.npos);
}
