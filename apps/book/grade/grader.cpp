// Chapter 3. Asking, comparing and printing.
#include "apps/book/grade/grader.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>

#include "core/tensor_ops.h"

namespace orrery::book {
namespace {

bool agrees(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

std::string digits(double number, int precision) {
  std::ostringstream out;
  out.precision(precision);
  out << (std::isnan(number) ? std::fabs(number) : number);  // nan, never -nan
  return out.str();
}

// " is 0.5, should be 0.25", with as many digits as tell the two apart.
std::string other_number(double got, double expected) {
  constexpr int short_precision = 9, whole_precision = 17;
  const bool told_apart = digits(got, short_precision) != digits(expected, short_precision);
  const int precision = told_apart ? short_precision : whole_precision;
  return " is " + digits(got, precision) + ", should be " + digits(expected, precision);
}

// "[1, 2]" for an element in row order.
std::string place(i64 index, const Shape& shape) {
  if (shape.rank() == 0) return "the number";
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(index % shape[axis]) + (text.empty() ? "" : ", ") + text;
    index /= shape[axis];
  }
  return "[" + text + "]";
}

// The hint where one ratio tells what came from what should have come, at every number.
constexpr const char* forgotten_factor =
    "Every number is off by one and the same ratio: a forgotten factor, or one too many. Where does it belong?";

// Whether all numbers are off by one ratio, and at least two are not 0.
bool off_by_one_ratio(const Tensor& got, const Tensor& expected, double tolerance) {
  if (!got.defined() || got.shape() != expected.shape() || got.dtype() != expected.dtype()) return false;
  i64 largest = -1, others = -1;
  for (i64 i = 0; i < expected.count(); ++i) {
    if (!std::isfinite(got.at(i)) || !std::isfinite(expected.at(i))) return false;
    if (largest < 0 || std::fabs(expected.at(i)) > std::fabs(expected.at(largest))) largest = i;
    others += expected.at(i) != 0;
  }
  if (others < 1 || got.at(largest) == 0) return false;
  const double ratio = got.at(largest) / expected.at(largest);
  for (i64 i = 0; i < expected.count(); ++i)
    if (!agrees(got.at(i), ratio * expected.at(i), tolerance)) return false;
  return true;
}

std::string difference(const Tensor& got, const Tensor& expected, double tolerance) {
  std::ostringstream out;
  if (!got.defined()) return "there is no tensor";
  if (got.shape() != expected.shape()) {
    out << "the shape is " << got.shape() << ", should be " << expected.shape();
  } else if (got.dtype() != expected.dtype()) {
    out << "the dtype is " << got.dtype() << ", should be " << expected.dtype();
  } else {
    for (i64 i = 0; i < got.count(); ++i)
      if (!agrees(got.at(i), expected.at(i), tolerance))
        return place(i, got.shape()) + other_number(got.at(i), expected.at(i));
  }
  return out.str();
}

constexpr size_t indent = 8, columns = 100;  // of what follows the line of a question

// Columns of a terminal: in UTF-8 a byte 10xxxxxx continues a letter, and a Chinese one takes two columns.
size_t width(const std::string& text) {
  size_t result = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += (byte & 0xC0) == 0x80 ? 0 : byte >= 0xE3 ? 2 : 1;
  }
  return result;
}

// A word in parts, between which a line may end: Chinese has no spaces, and is broken behind its commas and stops.
std::vector<std::string> parts_of(const std::string& word) {
  static const std::vector<std::string> stops{"，", "、", "：", "；", "。", "？"};
  std::vector<std::string> parts{""};
  for (size_t i = 0; i < word.size(); ++i) {
    parts.back() += word[i];
    const auto ends = [&](const std::string& stop) { return parts.back().ends_with(stop); };
    if (i + 1 < word.size() && std::any_of(stops.begin(), stops.end(), ends)) parts.emplace_back();
  }
  return parts;
}

// The text in lines that fit beside the indent, broken between words. The first keeps its own leading spaces, the
// others begin with `hanging`.
std::string wrapped(const std::string& text, const std::string& hanging = "  ") {
  std::istringstream words(text);
  std::string result, line = text.substr(0, std::min(text.size(), text.find_first_not_of(' '))), space;
  bool begun = false;
  for (std::string word; words >> word; space = " ") {
    for (const std::string& part : parts_of(word)) {
      if (begun && width(line + space + part) > columns - indent) {
        result += line + "\n";
        line = hanging;
        space.clear();
      }
      line += space + part;
      space.clear();
      begun = true;
    }
  }
  return result + line;
}

// The translation of a line, or of the same line with N for its numbers, which take the place of N again. What was
// thrown, and what is compared, are translated beside the words around them.
std::string translated_line(const std::string& line, const Translations& translations) {
  static const std::regex number("-?([0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?|\\b(nan|inf)\\b)");
  static const std::string thrown = "an error: ";
  if (const auto whole = translations.find(line); whole != translations.end()) return whole->second;
  auto form = translations.find(std::regex_replace(line, number, "N"));
  std::vector<std::string> words;
  const size_t is = line.find(" is "), should = line.find(", should be ");
  if (form != translations.end()) {
    for (std::sregex_iterator found(line.begin(), line.end(), number), end; found != end; ++found)
      words.push_back(found->str());
  } else if (line.starts_with(thrown)) {
    form = translations.find(thrown + "N");
    words = {translated_line(line.substr(thrown.size()), translations)};
  } else if (is < should && should != line.npos) {  // "aa: is a a, should be a ##a"
    form = translations.find("N is N, should be N");
    const std::string what = line.substr(0, is > 0 && line[is - 1] == ':' ? is - 1 : is);
    words = {translated_line(what, translations), line.substr(is + 4, should - is - 4), line.substr(should + 12)};
  }
  if (form == translations.end()) return line;
  std::string result;
  size_t next = 0;
  for (const char c : form->second) result += c == 'N' && next < words.size() ? words[next++] : std::string(1, c);
  return result;
}

// What to ask about code that fails a part of the proof; "" where the part's own message says it.
std::string question_about(const Proof& proof, const ProofPart& part) {
  static const std::map<std::string, std::string> questions{
      {"f32", "In f64 the formula is right: what depends on the dtype, or loses digits?"},
      {"repeatable", "What is remembered from one pass to the next?"},
      {"zero", "What does backward add that is no multiple of dy?"},
      {"threads", "What do threads share, or add up in the order in which they end?"},
      {"far", "Which formula is right for small numbers only?"},
      {"small", "What does backward divide by, or ask of an input, that may be 0?"},
      {"linear", "What does backward ask of dy, beside multiplying it?"},
      {"composed", "What does backward still read after it has written to it?"},
      {"accumulates", "Is each gradient added to the one that is there already?"},
      {"subsets", "What does one gradient need that is computed for another one only?"},
      {"shared", "Who else holds what is written to?"},
      {"interleaved", "What have two passes in common that each should have for itself?"},
      {"changed", "How does backward notice that what it reads has been changed?"},
      {"step", "Does forward read the parameter itself, or what was made of it earlier?"},
      {"file", "Is everything that is saved also loaded, under its own name?"}};
  const GradientCheck failed = proof.gradients.failed_check();
  if (part.name == "gradients" && (failed == GradientCheck::coordinate || failed == GradientCheck::direction))
    return "analytic is what backward gives, numeric is forward's slope: which term or factor differs?";
  const auto found = questions.find(part.name);
  return found == questions.end() ? "" : found->second;
}

// Whether the gradients are all wrong by one ratio, as their report says.
bool off_by_one_ratio(const Proof& proof) {
  const auto first = std::find_if(proof.parts.begin(), proof.parts.end(), [](const ProofPart& p) { return !p.ok; });
  return first != proof.parts.end() && first->name == "gradients" &&
         first->detail.find(" everywhere") != std::string::npos;
}

// The first part that failed, to its first coordinate; a question about it; and how many others failed.
std::string first_problem(const Proof& proof, const Translations& translations) {
  const auto first = std::find_if(proof.parts.begin(), proof.parts.end(), [](const ProofPart& p) { return !p.ok; });
  if (first == proof.parts.end()) return "";
  std::istringstream lines(first->name + ": " + first->detail);
  std::string result;
  bool complete = false;
  for (std::string line; std::getline(lines, line);) {
    const bool coordinate = line.starts_with("  ");  // below what is wrong as a whole
    if (complete && !coordinate) break;
    result += wrapped(translated(line, translations), "    ") + "\n";
    if (coordinate) break;
    complete = !line.ends_with(':');  // "with inputs 4 times as large:" is not yet the problem
  }
  const std::string question = question_about(proof, *first);
  if (!question.empty()) result += wrapped(translated(question, translations)) + "\n";
  std::string names;
  i64 others = 0;
  for (auto part = first + 1; part != proof.parts.end(); ++part) {
    if (part->ok) continue;
    names += (others == 0 ? "" : ", ") + part->name;
    ++others;
  }
  const std::string number = std::to_string(others) + (others == 1 ? " other part" : " other parts") + " failed too:";
  if (others > 0) result += wrapped(translated(number, translations) + " " + names) + "\n";
  result.pop_back();
  return result;
}

}  // namespace

Translations translations_for_reader() {
  Translations result;
  std::string language;
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"})
    if (const char* value = std::getenv(name); value != nullptr && language.empty()) language = value;
  if (!language.starts_with("zh")) return result;
  std::ifstream table(std::filesystem::path(__FILE__).replace_filename("hints.zh.txt"));
  std::string english;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.starts_with("# ")) continue;
    if (english.empty()) {
      english = line;
    } else {
      result[english] = line;
      english.clear();
    }
  }
  return result;
}

std::string translated(const std::string& text, const Translations& translations) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    result += line.substr(0, begin) + translated_line(line.substr(begin), translations) + '\n';
  }
  if (!result.empty() && !text.ends_with('\n')) result.pop_back();
  return result;
}

void Grader::ask(std::string question, const std::function<std::string()>& hint,
                 const std::function<std::string()>& wrong) {
  std::string what;
  try {
    what = wrong();
  } catch (const std::exception& error) { what = std::string("an error: ") + error.what(); } catch (...) {
    what = "an error that is no std::exception";
  }
  const bool right = what.empty();
  // What the first failed for often fails later questions, too, and their hints would lead elsewhere.
  const bool first = std::all_of(answers_.begin(), answers_.end(), [](const Answer& a) { return a.right; });
  answers_.push_back({std::move(question), right, translated(what, translations_),
                      right || !first ? "" : translated(hint(), translations_), translated("hint:", translations_)});
  if (live_) *live_ << answers_.back() << std::flush;
}

void Grader::ask(std::string question, std::string hint, const std::function<std::string()>& wrong) {
  ask(
      std::move(question), [&] { return hint; }, wrong);
}

void Grader::check(std::string question, std::string hint, const std::function<bool()>& right) {
  ask(std::move(question), std::move(hint), [&] { return right() ? "" : "this does not hold"; });
}

void Grader::equal(std::string question, const Expected<double>& expected, std::string hint,
                   const std::function<double()>& number) {
  ask(std::move(question), std::move(hint), [&] {
    const double got = number();
    return agrees(got, expected.value, expected.tolerance) ? "" : "the number" + other_number(got, expected.value);
  });
}

void Grader::at_most(std::string question, double bound, std::string hint, const std::function<double()>& number) {
  ask(std::move(question), std::move(hint), [&] {
    const double got = number();
    return got <= bound ? "" : "the number is " + digits(got, 9) + ", should be at most " + digits(bound, 9);
  });
}

void Grader::equal(std::string question, const Expected<Tensor>& expected, std::string hint,
                   const std::function<Tensor()>& tensor) {
  bool one_ratio = false;
  const auto wrong = [&] {
    const Tensor got = tensor();
    one_ratio = off_by_one_ratio(got, expected.value, expected.tolerance);
    return difference(got, expected.value, expected.tolerance);
  };
  ask(
      std::move(question), [&] { return one_ratio ? forgotten_factor : hint; }, wrong);
}

void Grader::prove(std::string question, std::string hint, const std::function<Sample()>& sample) {
  bool one_ratio = false;
  const auto wrong = [&] {
    const Proof proof = orrery::prove(sample(), {.mutants = false});
    one_ratio = off_by_one_ratio(proof);
    return first_problem(proof, translations_);
  };
  ask(
      std::move(question), [&] { return one_ratio ? forgotten_factor : hint; }, wrong);
}

void Grader::prove(std::string question, std::string hint, const Sample& sample) {
  prove(std::move(question), std::move(hint), [&] { return sample; });
}

void Grader::no_leak(std::string question, std::string hint, const std::function<nn::LeakCheck()>& check) {
  ask(std::move(question), std::move(hint), [&]() -> std::string {
    const nn::LeakReport report = nn::leakcheck(check());
    std::ostringstream matrix;
    matrix << "#: moves   .: does not move, and must not   -: does not move, but may   X: leak\n" << report;
    return report.ok() ? "" : matrix.str();
  });
}

void Grader::gradients(std::string question, std::string hint, const std::function<Checkable()>& function) {
  ask(std::move(question), std::move(hint), [&] {
    const GradcheckReport report = gradcheck(function());
    return report ? "" : report.message;
  });
}

bool Grader::passed() const {
  return !answers_.empty() && std::all_of(answers_.begin(), answers_.end(), [](const Answer& a) { return a.right; });
}

std::string Grader::count() const {
  const auto right = std::count_if(answers_.begin(), answers_.end(), [](const Answer& a) { return a.right; });
  return std::to_string(right) + " of " + std::to_string(answers_.size()) + " passed";
}

std::ostream& operator<<(std::ostream& out, const Grader::Answer& answer) {
  out << (answer.right ? "passed  " : "FAILED  ") << answer.question << '\n';
  if (answer.right) return out;
  const std::string margin(indent, ' ');
  const std::string label = answer.label + (answer.label.ends_with(':') ? " " : "");  // a Chinese colon is wide enough
  const std::string hint = answer.hint.empty() ? "" : wrapped(label + answer.hint, "      ");
  for (const std::string& text : {answer.what, hint}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) out << margin << line << '\n';
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Grader& grader) {
  for (const Grader::Answer& answer : grader.answers()) out << answer;
  return out << grader.count() << '\n';
}

int grade_program(void (*grade)(Grader&)) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // also into a pipe: what the student's code prints before a crash is seen
  Grader grader(&std::cout, translations_for_reader());
  try {
    grade(grader);
  } catch (const std::exception& error) {  // from the student's code, called outside of a question
    std::cout << "FAILED  an error ended the grading: " << error.what() << '\n';
    return 1;
  }
  std::cout << grader.count() << '\n';
  return grader.passed() ? 0 : 1;
}

}  // namespace orrery::book
