// Chapter 3. Tests of the grader: what it says of right answers, wrong ones, and those that throw.
#include "apps/book/grade/grader.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "apps/check/zoo/bug_zoo.h"
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/style_source.h"
#include "tests/text.h"

using namespace orrery;
using orrery::book::Grader;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

// What is wrong with an answer; "" if it is right.
std::string grade_of_number(double got, double expected) {
  Grader g;
  g.equal("a number", expected, "Count again.", [&] { return got; });
  return g.answers().at(0).what;
}

std::string grade_of_tensor(const Tensor& got, const Tensor& expected) {
  Grader g;
  g.equal("a tensor", expected, "Which axis?", [&] { return got; });
  return g.answers().at(0).what;
}

Tensor two_by_two(double last) { return Tensor::of<double>({2, 2}, {1, 2, 3, last}); }

struct HalfSlope {  // y = x x, whose slope is said to be x
  static constexpr std::string_view name = "half_slope";
  Saved x;
  Tensor forward(const Tensor& input) {
    x = input;
    return input * input;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * x); }
};

using Variables = std::map<std::string, std::string>;

// The reader's language, for as long as it lives: what of the three variables is not named is not set.
class Language {
 public:
  explicit Language(const Variables& variables) {
    for (const auto& [name, value] : variables_) {
      const auto wanted = variables.find(name);
      set(name, wanted == variables.end() ? std::nullopt : std::optional(wanted->second));
    }
  }
  ~Language() {
    for (const auto& [name, value] : variables_) set(name, value);
  }
  Language(const Language&) = delete;
  Language& operator=(const Language&) = delete;

 private:
  static std::optional<std::string> now(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  static void set(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> variables_{
      {"LC_ALL", now("LC_ALL")}, {"LC_MESSAGES", now("LC_MESSAGES")}, {"LANG", now("LANG")}};
};

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// The sentences of a source, which end with a stop or a question mark: in what grades, these are the hints. Literals
// beside each other are one; a question's name is no sentence.
void add_sentences(const std::filesystem::path& path, std::set<std::string>& sentences) {
  const std::string text = contents(path);
  std::string joined;
  const auto end = [&] {
    if (joined.find(' ') != joined.npos && (joined.back() == '.' || joined.back() == '?')) sentences.insert(joined);
    joined.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = text.find('\n', i);
    } else if (text[i] == '"') {
      for (++i; text[i] != '"'; ++i) joined += text[i] == '\\' ? text[++i] : text[i];
    } else if (!std::isspace(static_cast<unsigned char>(text[i]))) {
      end();
    }
  }
}

}  // namespace

TEST_CASE("a right answer passes, and nothing more is said of it") {
  Grader g;
  CHECK_FALSE(g.passed());  // nothing was asked
  g.check("one is one", "Is it?", [] { return true; });
  g.equal("a half", 0.5, "Halve it.", [] { return 0.5; });
  CHECK(g.passed());
  CHECK(g.answers()[1].what == "");
  CHECK(g.answers()[1].hint == "");
  std::ostringstream said;
  said << g;
  CHECK(said.str() == "passed  one is one\npassed  a half\n2 of 2 passed\n");
}

TEST_CASE("a wrong answer is followed by what is wrong, the first one by its hint, and the next question is asked") {
  Grader g;
  g.equal("a half", 0.5, "Halve it.", [] { return 0.25; });
  g.check("one is two", "Is it?", [] { return false; });
  g.check("one is one", "Is it?", [] { return true; });
  CHECK_FALSE(g.passed());
  std::ostringstream said;
  said << g;
  CHECK(said.str() ==
        "FAILED  a half\n        the number is 0.25, should be 0.5\n        hint: Halve it.\n"
        "FAILED  one is two\n        this does not hold\n"
        "passed  one is one\n1 of 3 passed\n");
}

TEST_CASE("an answer that throws is a wrong answer with the error's text") {
  Grader g;
  g.check("check", "", []() -> bool { throw std::runtime_error("no rows"); });
  g.equal("number", 1, "", []() -> double { throw std::runtime_error("no number"); });
  g.equal("tensor", zeros({2, 2}), "", [] { return matmul(zeros({2, 3}), zeros({2, 3})); });
  g.prove("proof", "", []() -> Sample { throw std::runtime_error("no sample"); });
  g.gradients("gradients", "", []() -> Checkable { throw std::runtime_error("no function"); });
  g.check("no exception", "", []() -> bool { throw 7; });
  REQUIRE(g.answers().size() == 6);
  for (const Grader::Answer& answer : g.answers()) CHECK_FALSE(answer.right);
  CHECK(g.answers()[0].what == "an error: no rows");
  CHECK(g.answers()[1].what == "an error: no number");
  CHECK(g.answers()[2].what.starts_with("an error: matmul: "));
  CHECK(g.answers()[3].what == "an error: no sample");
  CHECK(g.answers()[4].what == "an error: no function");
  CHECK(g.answers()[5].what == "an error that is no std::exception");
}

TEST_CASE("numbers are right within 1e-9 times the expected one, or 1e-9 if that is more") {
  CHECK(grade_of_number(1 + 0.9e-9, 1) == "");
  CHECK(grade_of_number(1 + 1.1e-9, 1) != "");
  CHECK(grade_of_number(0.9e-9, 0) == "");
  CHECK(grade_of_number(1.1e-9, 0) == "the number is 1.1e-09, should be 0");
  CHECK(grade_of_number(1e6 + 0.9e-3, 1e6) == "");
  CHECK(grade_of_number(1e6 + 1.1e-3, 1e6) != "");
  Grader g;
  g.equal("to a tenth", {1, 0.1}, "", [] { return 1.05; });
  CHECK(g.passed());
}

TEST_CASE("a number beyond its bound is printed with the bound; NaN is beyond every bound") {
  const auto grade = [](double number) {
    Grader g;
    g.at_most("small", 2, "Count.", [=] { return number; });
    return g.answers().at(0).what;
  };
  CHECK(grade(2) == "");
  CHECK(grade(2.5) == "the number is 2.5, should be at most 2");
  CHECK(grade(-not_a_number) == "the number is nan, should be at most 2");
}

TEST_CASE("NaN and infinity equal themselves alone") {
  CHECK(grade_of_number(not_a_number, not_a_number) == "");
  CHECK(grade_of_number(infinite, infinite) == "");
  CHECK(grade_of_number(not_a_number, 1) == "the number is nan, should be 1");
  CHECK(grade_of_number(1, not_a_number) == "the number is 1, should be nan");
  CHECK(grade_of_number(5, infinite) == "the number is 5, should be inf");
  CHECK(grade_of_number(infinite, 5) == "the number is inf, should be 5");
  CHECK(grade_of_number(-infinite, infinite) == "the number is -inf, should be inf");
  CHECK(grade_of_tensor(two_by_two(not_a_number), two_by_two(4)) == "[1, 1] is nan, should be 4");
}

TEST_CASE("a tensor's first wrong element is named by its coordinates") {
  CHECK(grade_of_tensor(two_by_two(4), two_by_two(4)) == "");
  CHECK(grade_of_tensor(two_by_two(5), two_by_two(4)) == "[1, 1] is 5, should be 4");
  CHECK(grade_of_tensor(two_by_two(5) * 2.0, two_by_two(4)) == "[0, 0] is 2, should be 1");
  CHECK(grade_of_tensor(full({}, 2, f64), full({}, 3, f64)) == "the number is 2, should be 3");
  CHECK(grade_of_tensor(Tensor::of<i32>({2}, {1, 2}), Tensor::of<i32>({2}, {1, 3})) == "[1] is 2, should be 3");
}

TEST_CASE("where every number is off by one ratio, the hint is that of a forgotten factor") {
  const auto hint = [](const Tensor& got, const Tensor& expected) {
    Grader g;
    g.equal("a tensor", expected, "Which axis?", [&] { return got; });
    return g.answers().at(0).hint;
  };
  const auto tells_of_a_factor = [](const std::string& text) { return text.find("a forgotten factor") != text.npos; };
  CHECK(tells_of_a_factor(hint(two_by_two(4) * 0.5, two_by_two(4))));
  CHECK(tells_of_a_factor(hint(-two_by_two(0), two_by_two(0))));
  CHECK(hint(two_by_two(8), two_by_two(4)) == "Which axis?");
  CHECK(hint(zeros({2, 2}, f64), two_by_two(4)) == "Which axis?");
  CHECK(hint(two_by_two(not_a_number), two_by_two(4)) == "Which axis?");
  CHECK(hint(full({1}, 2, f64), full({1}, 3, f64)) == "Which axis?");  // one number tells no ratio
  Grader g;
  g.prove("proof", "Where is x?", sample_of("f", [](const Variable& x) { return apply(HalfSlope{}, x); }, {{2, 3}}));
  CHECK(tells_of_a_factor(g.answers().at(0).hint));
}

TEST_CASE("a tensor of another shape or dtype, and none at all, are wrong") {
  const Tensor expected = two_by_two(4);
  CHECK(grade_of_tensor(expected.reshape({4}), expected) == "the shape is [4], should be [2, 2]");
  CHECK(grade_of_tensor(expected.to(f32), expected) == "the dtype is f32, should be f64");
  CHECK(grade_of_tensor(Tensor(), expected) == "there is no tensor");
  CHECK(grade_of_tensor(zeros({0, 2}, f64), zeros({0, 2}, f64)) == "");
}

TEST_CASE("a proof and the gradients pass for a right backward, and name the coordinate of a wrong one") {
  const auto right = [](const Variable& x) { return x * x; };
  const auto wrong = [](const Variable& x) { return apply(HalfSlope{}, x); };
  const auto grade = [](const auto& f) {
    Grader g;
    g.prove("proof", "", sample_of("f", f, {{2, 3}}));
    g.gradients("gradients", "", [&] { return sample_of("f", f, {{2, 3}}).build(f64, 1); });
    return g;
  };
  CHECK(grade(right).passed());
  const Grader found = grade(wrong);
  for (const Grader::Answer& answer : found.answers()) {
    CAPTURE(answer.what);
    CHECK_FALSE(answer.right);
    CHECK(answer.what.find("[0, 0]") != std::string::npos);
    CHECK(answer.what.find("0.5") != std::string::npos);  // the constant ratio
  }
}

TEST_CASE("a failed proof says in a few lines which part failed first, where, and how many others did") {
  Grader g;
  g.prove(
      "proof",
      "y = x x: how often does x appear, and what does each time give? This hint is so long that it needs two lines.",
      sample_of("half_slope", [](const Variable& x) { return apply(HalfSlope{}, x); }, {{2, 3}}));
  std::ostringstream said;
  said << g.answers().at(0);
  CAPTURE(said.str());
  std::istringstream lines(said.str());
  std::vector<std::string> read;
  for (std::string line; std::getline(lines, line);) read.push_back(line);
  REQUIRE(read.size() == 7);
  for (const std::string& line : read) CHECK(line.size() <= 100);
  CHECK(read[1] == "        gradients: 6 of 6 coordinates are wrong; ratio 0.5000 everywhere");
  CHECK(read[2].starts_with("          input 0[0, 0]: analytic "));
  CHECK(read[3].starts_with("        analytic is what backward gives"));
  CHECK(read[4] == "        3 other parts failed too: far, small, interleaved");
  CHECK(read[5].starts_with("        hint: Every number is off"));
  CHECK(read[6] == "              Where does it belong?");
}

TEST_CASE("a leak is a wrong answer, shown by its matrix") {
  Rng rng(1);
  const Tensor x = randn({1, 3, 2}, rng, f64);
  const auto check = [&](double of_all) {
    const auto output = [of_all](const Tensor& in) { return in + mean(in, {1}, true) * of_all; };
    return nn::LeakCheck{.name = "mixer", .input = x, .output = output, .may_move = nn::within_sequence(true)};
  };
  Grader g;
  g.no_leak("each by itself", "Which mean?", [&] { return check(0); });
  g.no_leak("all together", "Which mean?", [&] { return check(1); });
  REQUIRE(g.answers().size() == 2);
  CHECK(g.answers()[0].right);
  CHECK_FALSE(g.answers()[1].right);
  CHECK(g.answers()[1].what.find("row 0   0 # X X\n") != std::string::npos);
  CHECK(g.answers()[1].what.ends_with("LEAK: x position 1 of row 0 -> y position 0 of row 0, and 2 more\n"));
}

TEST_CASE("every hint has a Chinese translation, and every translation its hint") {
  const Language chinese(Variables{{"LANG", "zh_CN.UTF-8"}});
  const book::Translations translations = book::translations_for_reader();
  std::set<std::string> hints;
  const std::filesystem::path book = style::root / "apps/book";
  std::string others;
  for (int chapter = 0; chapter <= 11; ++chapter) {
    const std::filesystem::path grades = book / ("ch" + std::to_string(chapter)) / "exercises/grades.h";
    add_sentences(grades, hints);
    others += contents(grades);
  }
  for (const char* path : {"bugs/grades.h", "bugs/grades_of_steps.h", "grade/grader.cpp"})
    add_sentences(book / path, hints);
  for (const auto& entry : std::filesystem::directory_iterator(book / "own")) add_sentences(entry.path(), hints);
  for (const nn::Bug& bug : nn::bug_zoo()) hints.insert({bug.hint, bug.mistake});
  static const std::regex says("(?:say |task=|fail_answer )\"([^$\"]+)\"");
  for (const std::string& line : style::matches_in(contents(book / "grade/exercise"), says)) hints.insert(line);
  CHECK(hints.size() > 300);
  for (const std::string& hint : hints) CHECK_MESSAGE(translations.contains(hint), "not translated: ", hint);
  for (const char* path : {"apps/book/grade/grader.cpp", "apps/book/ch3/exercises/4_kink.cpp",
                           "apps/check/gradcheck.cpp", "apps/check/bugs.cpp"})
    others += contents(style::root / path);
  static const std::regex any_number("\\bN\\b");  // what says so is put together
  for (const auto& entry : translations) {
    const std::string& english = entry.first;
    const bool is_said = hints.contains(english) || others.find('"' + english) != others.npos;
    CHECK_MESSAGE((is_said || std::regex_search(english, any_number)), "no hint: ", english);
    CHECK_MESSAGE(style::columns_of(entry.second) != entry.second.size(), "not Chinese: ", entry.second);
  }
}

TEST_CASE("the reader's language is that of LC_ALL, else of LC_MESSAGES, else of LANG") {
  const auto is_chinese = [](const Variables& variables) {
    const Language language(variables);
    return !book::translations_for_reader().empty();
  };
  CHECK(is_chinese({{"LANG", "zh_CN.UTF-8"}}));
  CHECK(is_chinese({{"LC_MESSAGES", "zh_TW"}, {"LANG", "en_US.UTF-8"}}));
  CHECK(is_chinese({{"LC_ALL", "zh"}, {"LC_MESSAGES", "de_DE"}, {"LANG", "C"}}));
  CHECK(is_chinese({{"LC_ALL", ""}, {"LANG", "zh_CN"}}));  // an empty one is as good as none
  CHECK_FALSE(is_chinese({{"LC_ALL", "C"}, {"LANG", "zh_CN.UTF-8"}}));
  CHECK_FALSE(is_chinese({{"LC_MESSAGES", "en_US"}, {"LANG", "zh_CN.UTF-8"}}));
  CHECK_FALSE(is_chinese({{"LANG", "en_US.UTF-8"}}));
  CHECK_FALSE(is_chinese({}));
}

TEST_CASE("a Chinese reader gets hints in Chinese, in lines that fit; one without a translation in English") {
  const Language chinese(Variables{{"LANG", "zh_CN.UTF-8"}});
  const auto said = [](const std::string& hint) {
    Grader g(nullptr, book::translations_for_reader());
    g.check("one is two", hint, [] { return false; });
    std::ostringstream out;
    out << g.answers().at(0);
    return out.str();
  };
  const std::string failed = "FAILED  one is two\n        这一条不成立\n        提示：";
  CHECK(said("The forward was right.") == failed + "前向函数本来就对。\n");
  CHECK(said("Halve it.") == failed + "Halve it.\n");
  for (const auto& [english, translation] : book::translations_for_reader()) {
    std::istringstream lines(said(english));
    std::string line, joined;
    while (std::getline(lines, line)) {
      CHECK_MESSAGE(style::columns_of(line) <= 100, line);
      joined += line;
    }
    CHECK(without_spaces(joined).ends_with(without_spaces(translation)));
  }
  Grader g(nullptr, book::translations_for_reader());
  g.prove("proof", "Where is x?", sample_of("f", [](const Variable& x) { return apply(HalfSlope{}, x); }, {{2, 3}}));
  std::ostringstream out;
  out << g.answers().at(0);
  CHECK(out.str().find("        analytic 是反向函数给出的") != std::string::npos);
  CHECK(out.str().find("        提示：所有的数都差同一个倍数：") != std::string::npos);
}

TEST_CASE("the program that grades an exercise speaks the reader's language") {
  const Language chinese(Variables{{"LANG", "zh_CN.UTF-8"}});
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  const int code =
      book::grade_program([](Grader& g) { g.check("it falls", "tanh never falls.", [] { return false; }); });
  std::cout.rdbuf(before);
  CHECK(code == 1);
  CHECK(out.str() == "FAILED  it falls\n        这一条不成立\n        提示：tanh 从不下降。\n0 of 1 passed\n");
}

TEST_CASE("lines are translated with their numbers, whatever these are, and what the bugs' own checks say is known") {
  const Language chinese(Variables{{"LANG", "zh_CN.UTF-8"}});
  CHECK(book::for_reader("  [0, 12] is -0.5, should be 1.5e-09\nf32: 2 is 3\n") ==
        "  [0, 12]：得到 -0.5，应当是 1.5e-09\nf32: 2 is 3\n");
  CHECK(book::for_reader("the number is nan, should be -inf\n[1] is inf, should be 2") ==
        "得到 nan，应当是 -inf\n[1]：得到 inf，应当是 2");
  CHECK(book::for_reader("the shape is [2, 5], should be [2]") == "形状：得到 [2, 5]，应当是 [2]");
  CHECK(book::for_reader("an error: aa: is [UNK], should be a ##a") == "出错：aa：得到 [UNK]，应当是 a ##a");
  CHECK(book::for_reader("an error: no rows") == "出错：no rows");
  CHECK(book::for_reader("") == "");
  for (const nn::Bug& bug : nn::bug_zoo()) {
    const std::string found = bug.check ? bug.check() : "", numbers = bug.numbers ? bug.numbers() : "";
    CAPTURE(bug.name);
    CHECK((!found.starts_with("reference value") || book::for_reader(found) != found));
    CHECK((numbers.empty() || book::for_reader(numbers) != numbers));
  }
}
