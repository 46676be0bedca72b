// Chapter 8. The rules of the house for statements: each stands by itself, and no comma joins it to the next one.
#include <doctest/doctest.h>

#include <regex>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

// The code of a file as one text, without what the preprocessor reads.
std::string code_of(const Source& source) {
  std::string text;
  bool continued = false;
  for (const std::string& line : source.code) {
    const bool directive = continued || line.starts_with("#");
    continued = directive && line.ends_with("\\");
    text += (directive ? std::string(line.size(), ' ') : line) + "\n";
  }
  return text;
}

// The text with every pair of brackets emptied, and without the arguments of templates.
std::string outline_of(const std::string& text) {
  static const std::regex arguments("(\\w)<[^<>;=]*>");
  std::string outline;
  int depth = 0;
  for (const char c : text) {
    const bool opens = c == '(' || c == '[' || c == '{', closes = c == ')' || c == ']' || c == '}';
    if (closes) --depth;
    if (depth == 0) outline += c;
    if (opens) ++depth;
  }
  for (std::string before; before != outline;) {
    before = outline;
    outline = std::regex_replace(before, arguments, "$1");
  }
  return outline;
}

// Whether a statement has a comma between two expressions. One that declares begins with two words, type and name.
bool joins_statements(const std::string& statement) {
  if (statement.find(',') == statement.npos) return false;
  static const std::regex label("^\\s*((public|private|protected|default|case [^?]*[^:]):(?!:)\\s*)"),
      header("^\\s*(else\\b|do\\b|(if|for|while|switch)( constexpr)?\\s*\\(\\))\\s*"),
      joined("^\\s*(return\\b\\s*|\\*|\\+\\+|--)?(\\(|[\\w:]+\\s*([(\\[.,?]|->|<<|\\+\\+|--|[-+*/|&^%]?=(?!=)))");
  std::string rest = std::regex_replace(outline_of(statement), label, "");
  for (std::string before; before != rest;) {
    before = rest;
    rest = std::regex_replace(before, header, "");
  }
  return rest.find(',') != rest.npos && std::regex_search(rest, joined);
}

struct Statement {
  std::string text;
  size_t line;  // of its beginning, counted from 0
};

// Every statement that a semicolon ends, also in the bodies of lambdas and the heads of loops.
std::vector<Statement> statements_of(const std::string& code) {
  std::vector<Statement> found;
  std::string open;               // the open brackets
  std::vector<size_t> begins{0};  // of the statement inside each of them
  for (size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '(' || c == '[' || c == '{') {
      open += c;
      begins.push_back(i + 1);
    } else if (!open.empty() && (c == ')' || c == ']' || c == '}')) {
      open.pop_back();
      begins.pop_back();
      const size_t next = std::min(code.find_first_not_of(" \n", i + 1), code.size() - 1);
      const bool in_block = open.empty() || open.back() == '{';
      const bool goes_on = std::string_view(",;.)([-").find(code[next]) != std::string_view::npos;
      if (c == '}' && in_block && !goes_on) begins.back() = i + 1;
    } else if (c == ';') {
      const size_t begin = code.find_first_not_of(" \n", begins.back());
      const auto line = std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
      found.push_back({code.substr(begin, i - begin), static_cast<size_t>(line)});
      begins.back() = i + 1;
    }
  }
  return found;
}

// Statements joined by a comma. The last part of the head of a `for` ends with no semicolon, so it may have commas; a
// comma between parentheses is not looked for, such as that of (f(x), ...).
Words comma_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    for (const Statement& statement : statements_of(code_of(source))) {
      if (joins_statements(statement.text)) found.push_back(source.at(statement.line) + "a comma joins two statements");
    }
  }
  return found;
}

}  // namespace

TEST_CASE("no comma joins two statements") {
  CHECK(report(comma_violations(tree())) == "");
  const auto report_for = [](const std::string& text) { return report_of(comma_violations, "nn/a.h", text); };
  CHECK(report_for("void f() {\n  a = x, b = y;\n}\n") == "\nnn/a.h:2: a comma joins two statements");
}

TEST_CASE("statements that a comma joins are found in every place, and declarations are none") {
  for (const std::string joined : {"backward(loss), adam.step(3e-3);",
                                   "x.a = {1, 2}, x.b = 3;",
                                   "p->a(1), p->b(2);",
                                   "++n, sum += x;",
                                   "*p = 1, q = 2;",
                                   "table[0] = a, table[1] = b;",
                                   "return x = in, in * in;",
                                   "std::sort(a), std::sort(b);",
                                   "(void)f(), g();",
                                   "if (a) b(), c();",
                                   "for (;;) a = 1, b = 2;",
                                   "if (a) b(); else c(), d();",
                                   "if (a) {\n} else if (b) c(), d();",
                                   "case 1: a(), b();",
                                   "public: a(), b();",
                                   "f<A, B>(x), g(y);",
                                   "for (i = 0, j = 0; i < n; ++i) f();",
                                   "const auto f = [&] { a(), b(); };",
                                   "f([&](int i) { a = i, b = i; });",
                                   "do a(), b(); while (c);",
                                   "a = 1,\n    b = 2;",
                                   "static_cast<void>(a), b();",
                                   "out << a, out << b;"}) {
    CAPTURE(joined);
    CHECK(report_of(comma_violations, "nn/a.h", "{\n" + joined + "\n}\n") != "");
  }
  for (const std::string declared : {"int a = 1, b = 2;",
                                     "const T *a = f<A, B>(x), *b = g(y);",
                                     "Tensor a(x), b(y);",
                                     "i64 a, b;",
                                     "std::vector<std::pair<A, B>> a, b{1, 2};",
                                     "const auto [a, b] = f(x, y);",
                                     "using std::min, std::max;",
                                     "T& a = x, &b = y;",
                                     "enum A { a, b };",
                                     "for (int i = 0, j = 0; i < n; ++i, ++j) f(i, j);",
                                     "A(int a) : b(a), c(a) {}\nint d;",
                                     "A() : b{1}, c{2} {\n  f();\n}",
                                     "return {a, b};",
                                     "f(a, [&] { g(); });",
                                     "template <class A, class B>\nvoid f(A a, B b);",
                                     "struct A : B, C {\n};",
                                     "(f(x), ...);",
                                     "auto f = [a, b](int c, int d) { return c; }, g = f;",
                                     "A a{1, 2};\nB b = {3, 4};",
                                     "#define F(a, b) a = 1, b = 2;",
                                     "say(\"a = 1, b = 2;\");  // a = 1, b = 2;"}) {
    CAPTURE(declared);
    CHECK(report_of(comma_violations, "nn/a.h", "{\n" + declared + "\n}\n") == "");
  }
}
