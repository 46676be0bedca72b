// Chapter 9. The bench of long attention: what it measures, counted by hand, and its table.
#include "apps/bench_attention.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace orrery;

TEST_CASE("bench attention counts the products of both passes") {
  // One position: 7 products of 1 x 1 x 64 for each of 4 heads.
  CHECK(AttentionFigures{.T = 1}.flop() == 7.0 * 2 * 64 * 4);
  CHECK(AttentionFigures{.T = 3}.flop() == 7.0 * 2 * 64 * 4 * 6);  // 1 + 2 + 3 pairs
}

TEST_CASE("bench attention measures time and memory") {
  const AttentionFigures figures = measure_attention(40);
  CHECK(figures.T == 40);
  CHECK(figures.forward > 0);
  CHECK(figures.backward > 0);
  CHECK(attention_lengths().front() == 1024);
  CHECK(attention_lengths().back() == 16384);
}

TEST_CASE("bench attention prints a row for each length, with what all scores would take") {
  std::ostringstream out;
  print_attention(out, {{.T = 1024, .forward = 0.002, .backward = 0.005, .peak_bytes = 3 << 20}});
  CHECK(out.str().find("  1024          2.0           5.0") != std::string::npos);
  CHECK(out.str().find("3                16\n") != std::string::npos);  // 4 heads of 1024 x 1024 floats
}
