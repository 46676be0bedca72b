// Chapter 8. What its text says of the measured speed holds for the tables of apps/measure/bench/README.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/text.h"

using namespace orrery::style;

namespace {

// The numbers of every row "| name | 1.2 | 3 |" of a text, table after table.
std::vector<std::vector<double>> rows_called(const std::string& name, const Words& lines) {
  static const std::regex cell("\\| *([0-9.]+) *(?=\\|)");
  std::vector<std::vector<double>> rows;
  for (const std::string& line : lines) {
    if (!line.starts_with("| " + name + " |")) continue;
    rows.emplace_back();
    for (const std::string& number : matches_in(line, cell)) rows.back().push_back(std::stod(number));
  }
  return rows;
}

}  // namespace

TEST_CASE("rows of a table are read with all their numbers") {
  using Rows = std::vector<std::vector<double>>;
  CHECK(rows_called("a", {"| a | 1.5 | 2 |", "| ab | 3 |", "text", "| a | 4 |"}) == Rows{{1.5, 2}, {4}});
}

TEST_CASE("on two Zen 5 cores all train more than twice as fast as in PyTorch, on a Xeon 1.2 to 4 times as fast") {
  const auto faster = rows_called("times faster than PyTorch", lines_of("apps/measure/bench/README.md"));
  REQUIRE(faster.size() == 2);
  CHECK(faster[0].size() == 8);
  CHECK(*std::min_element(faster[0].begin(), faster[0].end()) > 2);
  CHECK(*std::min_element(faster[1].begin(), faster[1].end()) == 1.2);
  CHECK(*std::max_element(faster[1].begin(), faster[1].end()) == 4);
}

TEST_CASE("on two Zen 5 cores a step of a large model takes at most a tenth longer than the limit") {
  const auto times = rows_called("times the limit", lines_of("apps/measure/bench/README.md"));
  REQUIRE(times.size() == 2);
  REQUIRE(times[0].size() == 8);  // toy, annotated, tiny-mt, base, nanogpt, gpt-mid, gpt2, long
  for (const size_t large : {1, 3, 5, 6, 7}) CHECK(times[0][large] <= 1.1);
}
