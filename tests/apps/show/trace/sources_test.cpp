// Chapter 9. Lines of sources: found where they are, with their code.
#include "apps/show/trace/sources.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "apps/program/shipped_files.h"
#include "tests/core/support.h"
#include "tests/style_source.h"

using namespace orrery;

TEST_CASE("a line is found after another one, and its code ends where the statement or the body ends") {
  const SourceLine line = find_source_line("nn/models/stack.h", "with_attention(", "return with_residual(");
  CHECK(line.path == "nn/models/stack.h");
  const std::vector<std::string> file = style::split_lines(contents(style::root / line.path));
  CHECK(file.at(static_cast<size_t>(line.line) - 1).find("with_residual(attended, norm2") != std::string::npos);
  CHECK(line.code.size() == 2);
  CHECK(line.code.front().starts_with("return with_residual("));
  CHECK(line.code.back().ends_with(";"));
  CHECK(line.str() == "nn/models/stack.h:" + std::to_string(line.line));
}

TEST_CASE("an operation is found by its name, with the body of the function") {
  const SourceLine forward = operation_source("matmul", "forward"), back = operation_source("matmul", "backward");
  CHECK(forward.path == "autograd/ops/matmul.cpp");
  CHECK(forward.code.front().starts_with("Tensor forward("));
  CHECK(forward.code.back() == "}");
  CHECK(forward.line < back.line);
  CHECK(back.code.front().starts_with("void backward("));
  CHECK(back.code.size() > forward.code.size());
}

TEST_CASE("a function that only calls a part's is shown as that part's") {
  const SourceLine back = operation_source("linear", "backward"), own = operation_source("linear_relu", "backward");
  CHECK(back.path == "autograd/ops/fused/linear/linear.cpp");
  CHECK(std::count_if(back.code.begin(), back.code.end(),
                      [](const std::string& line) { return line.find("matmul_into(") != line.npos; }) == 2);
  CHECK(operation_source("linear", "forward").line < back.line);
  CHECK(back.line < own.line);
}

TEST_CASE("an indented body may have empty lines") {
  const SourceLine body = find_source_line("apps/book/ch5/adam.cpp", "", "for (const double g : {");
  CHECK(std::count(body.code.begin(), body.code.end(), "") > 0);
  CHECK(body.code.back() == "}");
}

TEST_CASE("what is not there is an error") {
  CHECK(small::error_of([] { operation_source("nonsense", "forward"); }) ==
        "trace: no file of autograd/ops defines nonsense");
  CHECK(small::error_of([] { find_source_line("nn/pass.h", "", "nonsense"); }) ==
        "trace: nn/pass.h has no line with 'nonsense'");
  CHECK(small::error_of([] { shipped_text("nn/nonsense.h"); }).starts_with("read "));
}
