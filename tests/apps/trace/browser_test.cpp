// Chapter 9. The page in headless Chromium: it says what the terminal says, and answers to keys, mouse and focus.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "apps/trace/page.h"
#include "tests/apps/run_program.h"
#include "tests/style_source.h"

using namespace orrery;

namespace {

// What terminal and page say of a step.
struct StepTexts {
  std::string operation, equation, source, shapes, values;
};
using AllTexts = std::map<int, StepTexts>;

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

AllTexts texts_of_terminal(const std::string& text) {
  static const std::regex head("^ {0,3}([0-9]+) ([a-z_]+(?: \\([0-9]+\\))?) +(.*[^ ]) +([a-z_/]+\\.(?:cpp|h):[0-9]+)$");
  static const std::regex values("^ {4}([^ ].* -> .*\\])  +([-0-9. ]+)$");
  AllTexts all;
  int number = 0;
  for (const std::string& line : style::split_lines(text)) {
    std::smatch match;
    if (line.starts_with("GRADIENTS")) break;
    if (std::regex_match(line, match, head)) {
      number = std::stoi(match[1]);
      all[number] = {.operation = match[2], .equation = match[3], .source = match[4], .shapes = "", .values = ""};
    } else if (std::regex_match(line, match, values)) {
      all[number].shapes = match[1], all[number].values = trimmed(match[2]);
    } else if (number > 0 && line.starts_with("          ")) {
      all[number].equation += " " + trimmed(line);
    }
  }
  return all;
}

std::string unescaped(std::string text) {
  for (const auto& [entity, sign] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
    for (size_t at = text.find(entity); at != text.npos; at = text.find(entity))
      text.replace(at, std::string_view(entity).size(), sign);
  return text;
}

// The text of the first element of this class in a piece of HTML; it has no elements inside.
std::string text_in(const std::string& html, const std::string& of_class) {
  const size_t at = html.find("class=\"" + of_class + "\"");
  REQUIRE_MESSAGE(at != html.npos, of_class);
  const size_t begin = html.find('>', at) + 1;
  return unescaped(html.substr(begin, html.find('<', begin) - begin));
}

AllTexts texts_of_page(const std::string& dom) {
  static const std::regex row("<tr class=\"(?:forward|backward)[^\"]*\" data-step=\"([0-9]+)\">");
  AllTexts all;
  for (std::sregex_iterator at(dom.begin(), dom.end(), row), end; at != end; ++at) {
    const size_t begin = static_cast<size_t>(at->position());
    const std::string html = dom.substr(begin, dom.find("</tr>", begin) - begin);
    CHECK(text_in(html, "number") == (*at)[1]);
    all[std::stoi((*at)[1])] = {.operation = text_in(html, "operation"),
                                .equation = text_in(html, "equation"),
                                .source = text_in(html, "source"),
                                .shapes = text_in(html, "shapes"),
                                .values = trimmed(text_in(html, "values"))};
  }
  return all;
}

// The page as Chromium leaves it, after `script` has run.
std::string dom_of(const std::string& fragment, const std::string& script = "") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("orrery_browser_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::string page = trace_page(traced_pass());
  page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
  std::ofstream(folder / "page.html") << page;
  const program::Result result = program::shell(
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --virtual-time-budget=3000 "
      "--user-data-dir='" +
      (folder / "profile").string() + "' --dump-dom 'file://" + (folder / "page.html").string() + fragment +
      "' 2>/dev/null");
  std::filesystem::remove_all(folder);
  CHECK(result.exit_code == 0);
  // Neither the data nor the scripts, only what they made.
  return result.text.substr(0, result.text.find("<script id=\"pass-data\""));
}

std::string press(const std::string& key) {
  return "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '" + key + "', bubbles: true}));";
}

std::string text_of_id(const std::string& dom, const std::string& id) {
  const size_t begin = dom.find('>', dom.find("id=\"" + id + "\"")) + 1;
  return unescaped(dom.substr(begin, dom.find('<', begin) - begin));
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
  CHECK(text_of_id(dom, "box") == "Encoder layer 1: multi-head self-attention");
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

TEST_CASE("browser: the backward pass has its own colour, and gradients flow against the arrows") {
  const std::string dom = dom_of("#step=62");
  CHECK(dom.find("going-back") != dom.npos);
  CHECK(text_of_id(dom, "pass") == "Backward");
  CHECK(dom.find("<g class=\"edge flows\" data-from=\"generator\" data-to=\"loss\"") != dom.npos);
  CHECK(text_of_id(dom, "loss") == "loss 1.9419");
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
  CHECK(program::contains(text_of_id(focus, "tip"), "-0.7328  0.4519  0.1077\n"));
  const std::string box =
      dom_of("#step=12", "document.querySelector('[data-box=src_embed]').focus({focusVisible: true});");
  CHECK(text_of_id(box, "tip")
            .starts_with("Input embedding and positional encoding\nstep 1: embedding_sum\ny [1, 3, 10]"));
}
