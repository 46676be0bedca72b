// Chapter 9. The page in headless Chromium: it says what the terminal says, and answers to keys, mouse and focus.
#include <iterator>
#include <map>
#include <regex>

#include "apps/show/trace/page.h"
#include "tests/apps/chromium.h"
#include "tests/style_source.h"

using namespace orrery;
using browser::text_of_id;

namespace {

// What terminal and page say of a step.
struct StepTexts {
  std::string operation, equation, source, shapes, values, inside{};
};
using AllTexts = std::map<int, StepTexts>;
// What they say of a parameter or of its gradient, by its name: the shape and the numbers.
using NumberTexts = std::map<std::string, std::vector<std::string>>;

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

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

NumberTexts gradients_of_terminal(const std::string& text) {
  static const std::regex gradient("^ {4}([a-z0-9_.]+) (\\[[0-9, ]+\\]) +([-0-9. ]+)$");
  NumberTexts all;
  bool begun = false;
  for (const std::string& line : style::split_lines(text)) {
    begun = begun || line.starts_with("GRADIENTS");
    std::smatch match;
    if (!begun || !std::regex_match(line, match, gradient)) continue;
    all[match[1]] = words_of(match[3]);
    all[match[1]].insert(all[match[1]].begin(), match[2]);
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

// Each matrix of the section on parameters reads itself out: "d(generator.bias) [6]: 0.0239 -0.0276 ...".
NumberTexts parameters_of_page(const std::string& dom) {
  static const std::regex read_out("aria-label=\"([^\" ]+) (\\[[0-9, ]+\\]): ([-0-9. ]+)\"");
  const std::string section = dom.substr(dom.find("<div id=\"parameters\">"));
  NumberTexts all;
  for (std::sregex_iterator at(section.begin(), section.end(), read_out), end; at != end; ++at) {
    all[(*at)[1]] = words_of((*at)[3]);
    all[(*at)[1]].insert(all[(*at)[1]].begin(), (*at)[2]);
  }
  return all;
}

// The shape and the first numbers, as the terminal shows them.
std::vector<std::string> shortened(std::vector<std::string> texts) {
  if (texts.size() > 5) {
    texts.resize(5);
    texts.push_back("..");
  }
  return texts;
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
std::string click(const std::string& where) { return "document.querySelector('" + where + "').click();"; }

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

TEST_CASE("browser: the page has the terminal's gradients of the parameters, and all of their digits") {
  const NumberTexts terminal = gradients_of_terminal(program::run("trace").text), page = parameters_of_page(dom_of(""));
  const ModelPass pass = traced_pass();
  REQUIRE(terminal.size() == pass.parameters.size());
  REQUIRE(page.size() == 2 * pass.parameters.size());
  const auto check_digits = [](const std::vector<std::string>& texts, const Tensor& x) {
    REQUIRE(texts.size() == static_cast<size_t>(x.count()) + 1);
    for (i64 i = 0; i < x.count(); ++i) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.4f", shown(x.at(i)));
      CHECK(texts[static_cast<size_t>(i) + 1] == digits);
    }
  };
  for (const TracedParameter& parameter : pass.parameters) {
    CAPTURE(parameter.name);
    CHECK(shortened(page.at("d(" + parameter.name + ")")) == terminal.at(parameter.name));
    check_digits(page.at("d(" + parameter.name + ")"), parameter.gradient);
    check_digits(page.at(parameter.name), parameter.value);
  }
}

TEST_CASE("browser: the loss shows its labels and the probabilities, with a frame around those of the labels") {
  for (const std::string number : {"61", "62"}) {
    const std::string dom = dom_of("#step=" + number), inside = dom.substr(dom.find("id=\"inside\""));
    CAPTURE(number);
    CHECK(dom.find("<section id=\"inside-section\">") != dom.npos);
    CHECK(inside.find("data-tip=\"P[0, 0, 6] = 0.") < inside.find("id=\"inputs\""));
    CHECK(program::times(dom, "class=\"label\"") == 6);
    static const std::regex of_label("class=\"label\"[^>]*data-tip=\"P\\[0, 0, 6\\] = [0-9.]+, of the label\"");
    CHECK(std::regex_search(dom, of_label));
  }
  const std::string dom = dom_of("#step=61");
  CHECK(dom.find("aria-label=\"labels [1, 6]: e d c b a &lt;eos&gt;\"") != dom.npos);
  CHECK(dom_of("#step=60").find("<section id=\"inside-section\" hidden") != std::string::npos);
}

TEST_CASE("browser: what a mask hides is hatched, and has no number") {
  static const std::regex hatched("<td class=\"masked\" data-tip=\"A\\[[0-9, ]+\\] is hidden by the mask\"></td>");
  const auto count = [](const std::string& dom) {
    return std::distance(std::sregex_iterator(dom.begin(), dom.end(), hatched), std::sregex_iterator());
  };
  CHECK(count(dom_of("#step=34")) == 30);  // computed
  CHECK(count(dom_of("#step=35")) == 30);  // and read by the product with V
  CHECK(count(dom_of("#step=13")) == 0);   // the encoder sees everything
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

TEST_CASE("browser: gradients of weights are written out, but not rows of more than 16 numbers") {
  static const std::regex of_weight("data-tip=\"dW\\[0, 1\\] = (-?[0-9.]+)\"[^>]*>\\1<");
  CHECK(std::regex_search(dom_of("#step=65"), of_weight));
  static const std::regex of_heads("data-tip=\"QKV\\[0, 0, 1\\] = -?[0-9.]+\"[^>]*></td>");
  CHECK(std::regex_search(dom_of("#step=2"), of_heads));
}

TEST_CASE("browser: the backward pass has its own colour, and gradients flow against the arrows") {
  const std::string dom = dom_of("#step=62");
  CHECK(dom.find("going-back") != dom.npos);
  CHECK(text_of_id(dom, "pass") == "Backward");
  CHECK(dom.find("<g class=\"edge flows\" data-from=\"generator\" data-to=\"loss\"") != dom.npos);
  CHECK(text_of_id(dom, "loss") == "loss 2.3105");
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

TEST_CASE("browser: a link to a step, a change of the address and a step's button in the table end playing") {
  for (const std::string& leave :
       {click("#inputs .link"), std::string("location.hash = '#step=11';"), click("tr[data-step=\"11\"] button")}) {
    CAPTURE(leave);
    const std::string dom = dom_of("#step=12", press(" ") + leave);
    CHECK(text_of_id(dom, "play") == "Play");
    CHECK(at_step(dom, 11));
  }
}

TEST_CASE("browser: code and matrices that scroll take the keys that move through them") {
  const std::string small = "document.querySelector('#code pre').style.height = '20px';";
  for (const std::string key : {"ArrowRight", "ArrowDown", "Home", "End", " "}) {
    CAPTURE(key);
    const std::string dom = dom_of("#step=12", small + press(key, "#code pre"));
    CHECK(at_step(dom, 12));
    CHECK(text_of_id(dom, "play") == "Play");
  }
  CHECK(at_step(dom_of("#step=12", press("ArrowRight", "#outputs .blocks")), 13));  // nothing to scroll
  CHECK(dom_of("#step=12").find("<pre tabindex=\"0\">") != std::string::npos);
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
