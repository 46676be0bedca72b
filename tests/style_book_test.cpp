// Chapter 0. The rules of the house for the book: chapter headers, reading order, a test for every source.
#include <doctest/doctest.h>

#include <set>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

constexpr std::string_view read_next = "// Read next: ";
const std::string first_source = "apps/examples/ch0_reverse.cpp", last_word = "the end";

// What the reader reads: everything but the tests.
Sources book(const Sources& sources) {
  Sources result;
  std::copy_if(sources.begin(), sources.end(), std::back_inserter(result),
               [](const Source& s) { return s.layer() != "tests"; });
  return result;
}

// The number of lines of the comment that a file opens with.
size_t header_length(const Source& source) {
  size_t n = 0;
  while (n < source.lines.size() && source.lines[n].starts_with("//")) ++n;
  return n;
}

// Where the header of a file sends its reader, "" if nowhere.
std::string next_of(const Source& source) {
  const size_t n = header_length(source);
  return n > 0 && source.lines[n - 1].starts_with(read_next) ? source.lines[n - 1].substr(read_next.size()) : "";
}

Words header_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    const bool test = source.layer() == "tests";
    if (source.chapter < 0 && (!test || source.path.ends_with("_test.cpp"))) {
      found.push_back(source.at(0) + "line 1 is not \"// Chapter N. What the file is.\"");
    }
    if (!test && next_of(source).empty()) {
      const size_t n = header_length(source);
      found.push_back(source.at(n > 0 ? n - 1 : 0) + "the header does not end with \"" + std::string(read_next) +
                      "...\"");
    }
  }
  return found;
}

// Follows "Read next" from the first file; each file must be met once, and the last one must say so.
Words reading_order_violations(const Sources& sources) {
  Words found;
  std::set<std::string> met;
  for (const Source* source = find_source(sources, first_source); source;) {
    met.insert(source->path);
    const std::string next = next_of(*source), at = source->at(std::max<size_t>(header_length(*source), 1) - 1);
    const Source* following = find_source(sources, next);
    if (next == last_word) break;
    if (!following)
      found.push_back(at + "read next: \"" + next + "\" is no source file");
    else if (met.contains(next))
      found.push_back(at + "read next: " + next + " was read before");
    if (!found.empty()) return found;
    source = following;
  }
  for (const Source& source : sources) {
    if (!met.contains(source.path)) found.push_back(source.at(0) + "no file says to read it next");
  }
  return found;
}

// Files without a test of their own: tables of samples are run by the tests, folder headers and catalogues only list.
bool needs_no_test(const Source& source) {
  static const std::set<std::string> lists{"nn/nn.h", "optim/optim.h", "core/tensor_ops.h", "autograd/ops.h"};
  return lists.contains(source.path) || source.stem().find("sample") != std::string::npos;
}

Words test_violations(const Sources& sources) {
  Words found;
  for (const Source& source : sources) {
    if (source.layer() == "tests" || source.layer() == "apps" || needs_no_test(source)) continue;
    const std::string test = "tests/" + source.folder() + "/" + source.stem() + "_test.cpp";
    if (!find_source(sources, test)) found.push_back(source.at(0) + test + " does not exist");
  }
  return found;
}

}  // namespace

TEST_CASE("every source opens with its chapter and says what to read next") {
  CHECK(report(header_violations(tree())) == "");
}

TEST_CASE("headers without chapter or next file are found") {
  const auto report_for = [](const std::string& path, const std::string& text) {
    return report(header_violations({make_source(path, text)}));
  };
  CHECK(report_for("nn/a.h", "// Chapter 5. A.\n//\n// Read next: nn/b.h\n#pragma once\n") == "");
  CHECK(report_for("tests/nn/a_test.cpp", "// Chapter 5. Tests of A.\n") == "");
  CHECK(report_for("nn/a.h", "// A.\n// Read next: nn/b.h\n") ==
        "\nnn/a.h:1: line 1 is not \"// Chapter N. What the file is.\"");
  CHECK(report_for("nn/a.h", "// Chapter 5. A.\n//\nint x;\n") ==
        "\nnn/a.h:2: the header does not end with \"// Read next: ...\"");
  CHECK(report_for("tests/nn/a_test.cpp", "// Tests of A.\n") != "");
}

TEST_CASE("\"Read next\" leads through every source once, from the first example to the end") {
  CHECK(report(reading_order_violations(book(tree()))) == "");
}

TEST_CASE("a reading order with a gap, a loop or a forgotten file is found") {
  const auto file = [](const std::string& path, const std::string& next) {
    return make_source(path, "// Chapter 0. A file.\n// Read next: " + next + "\n");
  };
  const auto order = [](const Sources& sources) { return report(reading_order_violations(sources)); };
  CHECK(order({file(first_source, "nn/a.h"), file("nn/a.h", last_word)}) == "");
  CHECK(order({file(first_source, "nn/b.h")}) == "\n" + first_source + ":2: read next: \"nn/b.h\" is no source file");
  CHECK(order({file(first_source, "nn/a.h"), file("nn/a.h", first_source)}) ==
        "\nnn/a.h:2: read next: " + first_source + " was read before");
  CHECK(order({file(first_source, last_word), file("nn/a.h", last_word)}) ==
        "\nnn/a.h:1: no file says to read it next");
  CHECK(order({file("nn/a.h", last_word)}) != "");
}

TEST_CASE("every source has a test of its name") { CHECK(report(test_violations(tree())) == ""); }

TEST_CASE("a source without a test is found") {
  const Source op = make_source("autograd/ops/softmax.cpp", ""), other = make_source("tests/core/softmax_test.cpp", "");
  CHECK(report(test_violations({op, other})) ==
        "\nautograd/ops/softmax.cpp:1: tests/autograd/ops/softmax_test.cpp does not exist");
  CHECK(report(test_violations({op, make_source("tests/autograd/ops/softmax_test.cpp", "")})) == "");
  CHECK(report(test_violations({make_source("nn/nn.h", ""), make_source("autograd/check/samples.cpp", "")})) == "");
}
