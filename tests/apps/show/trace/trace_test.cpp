// Chapter 9. `orrery trace`: what stands in the terminal, and the mistakes of its user.
#include <filesystem>
#include <regex>

#include "apps/show/trace/page.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"
#include "tests/style_source.h"

using namespace orrery;

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

TEST_CASE("the listing cuts no equation off") {
  const std::string text = program::run("trace").text;
  for (const std::string end : {"sum of dy\n", "softmax(logits)\n", "sum of dz\n"}) {
    CAPTURE(end);
    CHECK(program::contains(text, end));
  }
  static const std::regex cut("[a-z)]\\.\\. ");
  CHECK_FALSE(std::regex_search(text, cut));
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
