// Chapter 9. The bench of long attention: what it measures, counted by hand, and its table.
#include "apps/measure/bench/attention.h"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/core/support.h"

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
  if (small::counts_memory()) CHECK(figures.peak_bytes >= 2 * 40 * 3 * 4 * 64 * 4);  // qkv and its gradient, in f32
  CHECK(attention_lengths().front() == 1024);
  CHECK(attention_lengths().back() == 16384);
}

TEST_CASE("bench attention prints a row for each length, with what all scores would take") {
  std::ostringstream out;
  print_attention(out, {{.T = 1024,
                         .forward = 0.002,
                         .backward = 0.005,
                         .peak_bytes = 3 << 20,
                         .step = 0.042,
                         .step_peak_bytes = 50 << 20}});
  CHECK(out.str().find("  1024          2.0           5.0") != std::string::npos);
  CHECK(out.str().find("3                16        42             50\n") !=
        std::string::npos);  // scores: 4 heads of 1024 x 1024 floats
}

TEST_CASE("long: the training step of 16,384 positions takes at most 1 GB, and 2.2 times that of half as many") {
  if (!small::counts_memory()) return;
  AttentionFigures half{.T = 8192}, whole{.T = 16384};
  measure_long_step(half);
  measure_long_step(whole);
  MESSAGE("peak bytes: " << half.step_peak_bytes << ", " << whole.step_peak_bytes);
  CHECK(whole.step_peak_bytes <= 1 << 30);
  CHECK(static_cast<double>(whole.step_peak_bytes) <= 2.2 * static_cast<double>(half.step_peak_bytes));
}

TEST_CASE("bench attention measures a training step, whose memory grows with the length") {
  if (!small::counts_memory()) return;
  AttentionFigures shorter{.T = 600}, longer{.T = 1200};
  measure_long_step(shorter);
  measure_long_step(longer);
  CHECK(longer.step > 0);
  CHECK(longer.step_peak_bytes >= shorter.step_peak_bytes);
  CHECK(static_cast<double>(longer.step_peak_bytes) <= 2.2 * static_cast<double>(shorter.step_peak_bytes));
}

TEST_CASE("bench masks measures every mask beside none, and says which cost too much") {
  const std::vector<MaskCost> rows = measure_masks(70, 0);
  CHECK(rows.size() == 6);
  CHECK(rows[0].ratio() == 1);
  for (const MaskCost& row : rows) CHECK((row.T == 70 && row.seconds > 0 && row.unmasked == rows[0].seconds));
  std::ostringstream out;
  print_masks(out, {{.T = 256, .mask = "causal", .seconds = 0.002, .unmasked = 0.004},
                    {.T = 4096, .mask = "table", .seconds = 0.008, .unmasked = 0.004}});
  CHECK(out.str().find("   256   causal                        2.00          0.50\n") != std::string::npos);
  CHECK(out.str().find("  4096   table                         8.00          2.00   MISSED: at most 1.3\n") !=
        std::string::npos);
}
