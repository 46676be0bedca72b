// Chapter 8. The rules of the house for the text of the code: paths in comments, memory, lengths, kernels, state.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/text.h"

using namespace orrery::style;

namespace {

// Where the comment of a line begins; npos if it has none. A comment is blanked up to the end of the line.
size_t comment_of(const Source& source, size_t line) {
  const std::string &text = source.lines[line], &code = source.code[line];
  for (size_t at = text.find("//"); at != text.npos; at = text.find("//", at + 1))
    if (code.find_first_not_of(' ', at) == code.npos) return at;
  return text.npos;
}

// Every source that a comment names exists: by its whole path, or by the end of it. "chN" stands for any chapter.
Words path_violations(const Sources& sources) {
  static const std::regex path("[\\w./-]*\\w\\.(h|cpp)\\b");
  Words found;
  for (const Source& source : sources) {
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const size_t comment = comment_of(source, i);
      if (comment == std::string::npos) continue;
      const std::string text = source.lines[i].substr(comment + 2);
      for (std::sregex_iterator at(text.begin(), text.end(), path), end; at != end; ++at) {
        const std::string name = at->str();
        const char before = at->position() > 0 ? text[static_cast<size_t>(at->position()) - 1] : ' ';
        if (before == '<' || before == '*' || name.find("/chN/") != name.npos) continue;
        const bool exists = std::any_of(sources.begin(), sources.end(), [&](const Source& other) {
          return other.path == name || other.path.ends_with("/" + name);
        });
        if (!exists) found.push_back(source.at(i) + "there is no file " + name);
      }
    }
  }
  return found;
}

// Memory belongs to containers; only the allocator places objects itself.
Words ownership_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    for (size_t i = 0; i < source.code.size(); ++i) {
      const std::string& line = source.code[i];
      if (line.starts_with("#")) continue;
      const bool defines_operator =
          line.find(" operator new(") != line.npos || line.find(" operator delete(") != line.npos;
      const bool placement = source.path == "core/machine/memory.cpp" && line.find("::new (") != std::string::npos;
      if (defines_operator) continue;
      if (has_word(line, "new") && !placement) found.push_back(source.at(i) + "new: use a container");
      const size_t at = find_word(line, "delete");
      const bool deleted_function = at != line.npos && at >= 2 && line.substr(0, at).ends_with("= ");
      if (at != line.npos && !deleted_function) found.push_back(source.at(i) + "delete: use a container");
    }
  }
  return found;
}

Words length_violations(const Sources& sources) {
  constexpr size_t most_lines = 450, most_columns = 120;
  Words found;
  for (const Source& source : sources) {
    if (source.lines.size() > most_lines) {
      found.push_back(source.at(most_lines) + "the file has " + std::to_string(source.lines.size()) + " lines");
    }
    for (size_t i = 0; i < source.lines.size(); ++i) {
      const size_t columns = columns_of(source.lines[i]);
      if (columns > most_columns) found.push_back(source.at(i) + std::to_string(columns) + " columns");
    }
  }
  return found;
}

// The variable a line of code defines, if that is one that lives as long as the program and can change; else "".
// Such lines start in column 0 (clang-format does not indent namespaces) or say static or thread_local.
std::string state_defined_by(const std::string& code) {
  size_t start = std::min(find_word(code, "static"), find_word(code, "thread_local"));
  if (start == code.npos) {
    if (code.empty() || !is_word(code[0])) return "";
    const std::string first = code.substr(0, code.find_first_of(" :<("));
    static const std::set<std::string> other{"using",         "namespace", "struct",   "class",   "enum",
                                             "union",         "typedef",   "template", "public",  "private",
                                             "static_assert", "protected", "friend",   "concept", "requires"};
    if (other.contains(first)) return "";
    start = 0;
  }
  std::string declaration = code.substr(start);
  const size_t bracket = declaration.find('[');
  const size_t end = std::min(bracket, declaration.find_first_of("=;{("));
  if (end == declaration.npos) return "";  // nothing yet
  // Parentheses are those of a function, unless a value follows.
  if (declaration[end] == '(' && declaration.find_first_of("0123456789-\"'", end) != end + 1) return "";
  declaration.resize(end);
  if (has_word(declaration, "const") || has_word(declaration, "constexpr")) return "";
  if (has_word(declaration, "operator")) return "";  // operator== is a function
  const std::string name = word_before(declaration, end);
  return name == declaration ? "" : name;
}

Words state_of(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    if (source.layer() == "tests") continue;
    for (const std::string& line : source.code) {
      const std::string name = state_defined_by(line);
      if (!name.empty()) found.push_back(source.path + ": " + name);
    }
  }
  return found;
}

// Arithmetic in headers is compiled in each file that uses it, for that file alone: core/kernels/README.md says why.
bool holds_kernels(const Source& source) {
  static const std::set<std::string> folders{"core/kernels",
                                             "core/products",
                                             "autograd/ops",
                                             "autograd/ops/fused",
                                             "autograd/ops/fused/attention",
                                             "autograd/ops/fused/linear"};
  static const std::set<std::string> files{"core/machine/math.h", "core/machine/vector.h"};
  return source.path.ends_with(".h") && (folders.contains(source.folder()) || files.contains(source.path));
}

// Where a declaration ends, or its body begins: the first ; or { outside parentheses.
size_t end_of_declaration(const std::string& code) {
  int depth = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    depth += (code[i] == '(') - (code[i] == ')');
    if (depth == 0 && (code[i] == '{' || code[i] == ';')) return i;
  }
  return code.npos;
}

// Definitions start in column 0. Functions that are constexpr choose sizes, and compute with integers alone.
Words shared_kernels(const Sources& sources) {
  static const std::set<std::string> other{"namespace", "struct", "class",         "using",   "enum",     "template",
                                           "static",    "extern", "static_assert", "typedef", "requires", "concept"};
  Words found;
  for (const Source& source : sources) {
    if (!holds_kernels(source)) continue;
    bool unnamed = false;
    for (size_t i = 0; i < source.code.size(); ++i) {
      const std::string& line = source.code[i];
      if (line.starts_with("namespace {")) unnamed = true;
      if (source.lines[i] == "}  // namespace") unnamed = false;
      if (unnamed || line.empty() || !is_word(line[0]) || other.contains(line.substr(0, line.find_first_of(" (<"))))
        continue;
      const std::string at = source.at(i);
      std::string definition = line;
      while (end_of_declaration(definition) == definition.npos && i + 1 < source.code.size())
        definition += source.code[++i];
      const size_t end = end_of_declaration(definition), bracket = definition.find('(');
      const bool function = bracket < end && end != definition.npos && definition[end] == '{';
      const bool object = definition.find("= []") < end;
      const bool operation = definition.starts_with("inline Variable ");  // calls others, and computes nothing
      if (object || (function && !operation && !has_word(definition.substr(0, bracket), "constexpr")))
        found.push_back(at + "not static: core/kernels/README.md");
    }
  }
  return found;
}

}  // namespace

TEST_CASE("arithmetic in headers is static, so that no user's copy of it replaces the library's") {
  CHECK(report(shared_kernels(tree())) == "");
  const auto report_for = [](const std::string& text) { return report_of(shared_kernels, "core/kernels/a.h", text); };
  CHECK(report_for("template <class T>\nT f(\n    T x) {\n") ==
        "\ncore/kernels/a.h:2: not static: core/kernels/README.md");
  CHECK(report_for("inline float f(float x) {") == "\ncore/kernels/a.h:1: not static: core/kernels/README.md");
  CHECK(report_for("inline constexpr auto f = []<class T>(T x) {") ==
        "\ncore/kernels/a.h:1: not static: core/kernels/README.md");
  CHECK(report_for("static float f(float x) {\n") == "");
  CHECK(report_for("inline Variable f(const Variable& x) { return neg(x); }\n") == "");
  CHECK(report_for("float f(A a = {},\n        B b = {});\ninline constexpr i64 n = f(3);\nstruct A {\n") == "");
  CHECK(report_for("namespace {\nfloat f(float x) {\n}  // namespace\n") == "");
  CHECK(report_for("namespace {\n}  // namespace\nfloat f(float x) {\n") != "");
  CHECK(report_of(shared_kernels, "core/tensor.h", "inline float f(float x) {") == "");
}

TEST_CASE("every source that a comment names exists") {
  CHECK(report(path_violations(tree())) == "");
  CHECK(report_of(path_violations, "nn/a.h", "// see core/shape.h, a.h, layers/linear.h and <vector.h>\n") == "");
  CHECK(report_of(path_violations, "nn/a.h", "int a;  // as in core/shapes.h.\n") ==
        "\nnn/a.h:1: there is no file core/shapes.h");
  CHECK(report_of(path_violations, "nn/a.h", "/// nn/linear.h\n") != "");
  CHECK(report_of(path_violations, "nn/a.h", "f(\"// b.h\");\n") == "");
}

TEST_CASE("nobody writes new or delete") {
  CHECK(report(ownership_violations(tree())) == "");
  CHECK(report_of(ownership_violations, "nn/a.h", "auto p = new int;\n") == "\nnn/a.h:1: new: use a container");
  CHECK(report_of(ownership_violations, "nn/a.h", "delete p;\n") == "\nnn/a.h:1: delete: use a container");
  CHECK(report_of(ownership_violations, "nn/a.h", "A(A&) = delete;  // a new one\nsay(\"new\");\n") == "");
}

TEST_CASE("files have at most 450 lines of at most 120 columns; about 300 is usual") {
  CHECK(report(length_violations(tree())) == "");
  CHECK(report_of(length_violations, "nn/a.h", std::string(120, 'a') + "\n" + std::string(121, 'a')) ==
        "\nnn/a.h:2: 121 columns");
  CHECK(report_of(length_violations, "nn/a.h", std::string(450, '\n')) == "");
  CHECK(report_of(length_violations, "nn/a.h", std::string(451, '\n')) == "\nnn/a.h:451: the file has 451 lines");
}

TEST_CASE("the process-wide state is this list") {
  CHECK(report(state_of(tree())) ==
        report({"apps/program/crowding.cpp: crowding", "apps/program/crowding.cpp: wait_before",
                "apps/program/interrupt.cpp: first_signal", "apps/training/ranks.cpp: one",
                "autograd/check/scheduling.cpp: loops_of_exact_threads", "autograd/node.cpp: next_number",
                "autograd/node.cpp: current_observer", "autograd/variable.cpp: recording",
                "core/machine/memory.cpp: storage", "core/machine/parallel.h: loop_rules",
                "core/products/gemm.cpp: by_blas", "core/products/gemm.cpp: to_bf16"}));
}
