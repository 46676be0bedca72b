// Chapter 9. `orrery trace`: what stands in the terminal, the page, and in headless Chromium: it says what the terminal
// says, and answers to keys, mouse and focus.
#include <doctest/doctest.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "apps/show/trace/model_pass.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/chromium.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"
#include "tests/style_source.h"

using namespace orrery;
using browser::text_of_id;

TEST_CASE("the listing has every step in its order, within 100 columns, and ends with the loss") {
  const program::Result result = program::run("trace");
  CHECK(result.exit_code == 0);
  CHECK(program::errors("trace").text.empty());
  i64 number = 0;
  static const std::regex step("^ *([0-9]+) [a-z_]+( \\([0-9]+\\))? .*\\.(cpp|h):[0-9]+$");
  for (const std::string& line : style::split_lines(result.text)) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
    CHECK_FALSE(line.ends_with(" "));
    if (std::smatch match; std::regex_match(line, match, step)) CHECK(std::stoll(match[1]) == ++number);
  }
  CHECK(number == 122);
  CHECK(program::line(result.text, -1) == "loss 2.3105, 122 steps");
  CHECK(program::contains(result.text, "Encoder layer 0: multi-head self-attention "));
  CHECK(program::contains(result.text, "    Q [1, 2, 6, 4] K [1, 2, 5, 4] -> S [1, 2, 6, 5] "));
}

TEST_CASE("the listing has the probabilities of the loss, and dashes for what a mask hides") {
  const std::string text = program::run("trace").text;
  CHECK(program::contains(text, "    logits [1, 6, 7] labels [1, 6] -> L [] "));
  CHECK(program::contains(text, "    inside: P [1, 6, 7] "));
  CHECK(program::contains(text, "  1.0000       -       -       - ..\n"));
}

TEST_CASE("--html writes one page, and nothing to stdout") {
  const TemporaryFolder folder;
  const std::string path = folder / "trace.html";
  const program::Result result = program::run("trace --html '" + path + "'");
  CHECK(result.exit_code == 0);
  CHECK(result.text.empty());
  CHECK(contents(path) == trace_page(traced_pass()));
}

TEST_CASE("a page that cannot be written is one line and exit code 1, a wrong option exit code 2") {
  program::check_failure(program::quoted_program + "trace --html /nonexistent/trace.html",
                         "--html /nonexistent/trace.html");
  program::check_failure(program::quoted_program + "trace --html /tmp", "is a folder");
  const TemporaryFolder folder;
  write_safetensors(folder / "model", {{"a", zeros({1})}});
  for (const std::string output : {"trace --html", "claims first-gradients --json"})
    program::check_failure(program::quoted_program + output + " '" + (folder / "model") + "'",
                           "is a file that holds a model");
  CHECK(read_safetensors(folder / "model").tensors.size() == 1);
  program::check_usage_error("trace --nonsense", "'--nonsense'", "orrery trace --help");
  program::check_usage_error("trace --html ''", "--html", "must not be empty");
}

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

TEST_CASE("the page has every box of the pass, and its data") {
  const ModelPass pass = traced_pass();
  const std::string page = trace_page(pass);
  std::set<std::string> drawn, traced;
  static const std::regex box("data-box=\"([^\"]+)\"");
  for (std::sregex_iterator at(page.begin(), page.end(), box), end; at != end; ++at) drawn.insert((*at)[1]);
  for (const TracedBox& each : pass.boxes) traced.insert(each.id);
  CHECK(drawn == traced);
  CHECK(page.find(trace_json(pass)) != page.npos);
}

namespace {

// What terminal and page say of a step.
struct StepTexts {
  std::string operation, equation, source, shapes, values, inside{};
};
using AllTexts = std::map<int, StepTexts>;

AllTexts texts_of_terminal(const std::string& text) {
  static const std::regex head("^ {0,3}([0-9]+) ([a-z_]+(?: \\([0-9]+\\))?) +(.*[^ ]) +([a-z_/]+\\.(?:cpp|h):[0-9]+)$");
  static const std::regex values("^ {4}([^ ].* -> .*\\])  +([-0-9. ]+)$"), inside("^ {4}(inside: .*\\])( .*)$");
  AllTexts all;
  int number = 0;
  for (const std::string& line : style::split_lines(text)) {
    std::smatch match;
    if (line.starts_with("GRADIENTS")) break;
    if (std::regex_match(line, match, head)) {
      number = std::stoi(match[1]);
      all[number] = {.operation = match[2], .equation = match[3], .source = match[4], .shapes = "", .values = ""};
    } else if (std::regex_match(line, match, values)) {
      all[number].shapes = match[1];
      all[number].values = style::stripped(match[2]);
    } else if (std::regex_match(line, match, inside)) {
      all[number].inside = match[1].str() + " " + style::stripped(match[2]);
    } else if (number > 0 && line.starts_with("          ")) {
      all[number].equation += " " + style::stripped(line);
    }
  }
  return all;
}

// The text of the first element of this class in a piece of HTML; it has no elements inside.
std::string text_in(const std::string& html, const std::string& of_class) {
  const size_t at = html.find("class=\"" + of_class + "\"");
  REQUIRE_MESSAGE(at != html.npos, of_class);
  return browser::text_behind(html, at);
}

AllTexts texts_of_page(const std::string& dom) {
  static const std::regex row("<tr class=\"(?:forward|backward)[^\"]*\" data-step=\"([0-9]+)\">");
  AllTexts all;
  for (std::sregex_iterator at(dom.begin(), dom.end(), row), end; at != end; ++at) {
    const size_t begin = static_cast<size_t>(at->position());
    const std::string html = dom.substr(begin, dom.find("</tr>", begin) - begin);
    CHECK(text_in(html, "link number") == (*at)[1]);
    all[std::stoi((*at)[1])] = {.operation = text_in(html, "operation"),
                                .equation = text_in(html, "equation"),
                                .source = text_in(html, "source"),
                                .shapes = text_in(html, "shapes"),
                                .values = style::stripped(text_in(html, "values"))};
    if (html.find("class=\"inside\"") == html.npos) continue;
    const std::string inside = text_in(html, "inside");
    const size_t shape_end = inside.find(']') + 1;
    all[std::stoi((*at)[1])].inside = inside.substr(0, shape_end) + " " + style::stripped(inside.substr(shape_end));
  }
  return all;
}

// The page as Chromium leaves it, after `script` has run.
std::string dom_of(const std::string& fragment, const std::string& script = "") {
  std::string page = trace_page(traced_pass());
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
  const std::string dom = browser::dom_of_page(page, fragment);
  // Neither the data nor the scripts, only what they made.
  return dom.substr(0, dom.find("<script id=\"pass-data\""));
}

std::string press(const std::string& key, const std::string& where = "body") {
  return "document.querySelector('" + where + "').dispatchEvent(new KeyboardEvent('keydown', {key: '" + key +
         "', bubbles: true}));";
}

bool at_step(const std::string& dom, int number) {
  const size_t body = dom.find("<body");
  const std::string tag = dom.substr(body, dom.find('>', body) - body);
  return program::contains(tag, "data-step=\"" + std::to_string(number) + "\"");
}

}  // namespace

TEST_CASE("browser: the page has the terminal's steps, shapes and values") {
  const AllTexts terminal = texts_of_terminal(program::run("trace").text), page = texts_of_page(dom_of(""));
  REQUIRE(terminal.size() == 122);
  REQUIRE(page.size() == terminal.size());
  for (const auto& entry : terminal) {
    const auto number = entry.first;
    const StepTexts& texts = entry.second;
    CAPTURE(number);
    const StepTexts& shown = page.at(number);
    CHECK(shown.operation == texts.operation);
    CHECK(shown.equation == texts.equation);
    CHECK(shown.source == texts.source);
    CHECK(shown.shapes == texts.shapes);
    CHECK(shown.values == texts.values);
    CHECK(shown.inside == texts.inside);
    CHECK(texts.values.find('.') != std::string::npos);
  }
}

TEST_CASE("browser: a step shows its box, its numbers, its code and what flows") {
  const ModelPass pass = traced_pass();
  const auto step =
      std::find_if(pass.steps.begin(), pass.steps.end(), [](const TracedStep& s) { return s.operation == "matmul"; });
  REQUIRE(step != pass.steps.end());
  const std::string dom = dom_of("#step=" + std::to_string(step->number));
  CHECK(at_step(dom, static_cast<int>(step->number)));
  CHECK(text_of_id(dom, "pass") == "Forward");
  CHECK(text_of_id(dom, "box") == "Encoder layer 0: multi-head self-attention");
  CHECK(text_of_id(dom, "operation") == "matmul");
  CHECK(dom.find("<g class=\"box attention active computed\" data-box=\"encoder.layers.0.self_attn\"") != dom.npos);
  const size_t begin = dom.find("id=\"outputs\"");
  const std::string outputs = dom.substr(begin, dom.find("</section>", begin) - begin);
  size_t at = 0;
  for (i64 i = 0; i < step->outputs[0].value.count(); ++i) {
    char digits[16];
    std::snprintf(digits, sizeof digits, ">%.4f<", shown(step->outputs[0].value.at(i)));
    at = outputs.find(digits, at);
    REQUIRE_MESSAGE(at != outputs.npos, digits);
  }
  CHECK(dom.find("Tensor forward(const Tensor&amp; left, const Tensor&amp; right) {") != dom.npos);
  const std::string first = dom_of("#step=2");
  CHECK(first.find("<g class=\"edge flows\" data-from=\"src_embed\" data-to=\"encoder.layers.0.self_attn\"") !=
        first.npos);
  CHECK(first.find("<g class=\"edge\" data-from=\"src_embed\" data-to=\"encoder.layers.0.norm1\"") != first.npos);
}

TEST_CASE("browser: in Chinese the page says nothing in English but code, formulas and the model's words") {
  std::string page = trace_page(traced_pass());
  page.replace(page.find("lang=\"en\""), 9, "lang=\"zh\"");
  page.insert(page.rfind("</body>"),
              "<script>document.querySelectorAll('pre, code, script, .shapes, .token').forEach((e) => e.remove());"
              "const intro = byId('intro'); intro.textContent = intro.textContent.slice(0, 5);"
              "intro.append(String(document.body.textContent.match(/[A-Za-z]{3,} [a-z]{3,}/g)));</script>");
  for (const char* step : {"#step=1", "#step=61", "#step=62", "#step=100"})
    CHECK(text_of_id(browser::dom_of_page(page, step), "intro") == "论文的模型null");
}

TEST_CASE("browser: gradients of weights are written out, but not rows of more than 16 numbers") {
  static const std::regex of_weight("data-tip=\"dW\\[0, 1\\] = (-?[0-9.]+)\"[^>]*>\\1<");
  CHECK(std::regex_search(dom_of("#step=65"), of_weight));
  static const std::regex of_heads("data-tip=\"QKV\\[0, 0, 1\\] = -?[0-9.]+\"[^>]*></td>");
  CHECK(std::regex_search(dom_of("#step=2"), of_heads));
}

TEST_CASE("browser: keys move by a step, by a box, to the ends, and play") {
  CHECK(at_step(dom_of("", press("ArrowRight")), 2));
  CHECK(at_step(dom_of("#step=12", press("ArrowLeft")), 11));
  CHECK(at_step(dom_of("#step=2", press("ArrowDown")), 18));
  CHECK(at_step(dom_of("#step=18", press("ArrowUp")), 2));
  CHECK(at_step(dom_of("#step=2", press("End")), 122));
  const std::string paused = dom_of("#step=5", press(" ") + press(" "));
  CHECK(at_step(paused, 5));
  CHECK(text_of_id(paused, "play") == "Play");
  const std::string playing = dom_of("#step=5", press(" "));
  CHECK(text_of_id(playing, "play") == "Pause");
  CHECK_FALSE(at_step(playing, 5));
}

TEST_CASE("browser: values are shown under the mouse and for what has the focus") {
  const std::string mouse = dom_of(
      "#step=12", "document.querySelector('#outputs td').dispatchEvent(new MouseEvent('mousemove', {bubbles: true}));");
  CHECK(text_of_id(mouse, "tip").starts_with("Z[0, 0, 0, 0] = "));
  CHECK(mouse.find("id=\"tip\" role=\"tooltip\" hidden") == mouse.npos);
  const std::string focus =
      dom_of("#step=12", "document.querySelector('#outputs .blocks').focus({focusVisible: true});");
  CHECK(program::contains(text_of_id(focus, "tip"), "0.3801  0.0911  0.2234 -0.1216 -0.1010\n"));
  const std::string box =
      dom_of("#step=12", "document.querySelector('[data-box=src_embed]').focus({focusVisible: true});");
  CHECK(text_of_id(box, "tip")
            .starts_with("Input embedding and positional encoding\nstep 1: embedding_sum\ny [1, 5, 8]"));
}
