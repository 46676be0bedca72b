// Chapter 9. Is one system better than another, or was it the choice of test sentences? Paired bootstrap resampling.
//
// "Statistical Significance Tests for Machine Translation Evaluation" (Koehn 2004): draw as many lines as the test set
// has, each from all of its lines, so that some come twice and some not at all. Score both systems on this sample.
// Repeat this a thousand times. The share of the samples in which a system scores higher says how sure its lead is.
//
// The p-value is computed as in sacreBLEU: how likely would a difference at least as large be, if both were equally
// good? Let d_s be |score of the system - score of the baseline| on sample s of n, and d the same on the whole test
// set:
//   p = (1 + how many d_s - mean(d_s) exceed d) / (1 + n)
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/dtype.h"

namespace orrery::translate {

/// The score of the text that consists of the lines with these numbers, counted from 0.
using ScoreOfLines = std::function<double(std::span<const i64> lines)>;

/// Two systems, scored by the same metric.
struct Paired {
  ScoreOfLines system, baseline;
};

/// Mean of a system's scores on the samples; 95 % of them lie within an interval that is twice `half_width` wide.
struct Spread {
  double mean = 0, half_width = 0;
};

struct Comparison {
  double difference = 0;  ///< on the whole test set: the system's score minus the baseline's
  Spread system, baseline;
  double higher = 0;  ///< share of the samples in which the system scores higher, from 0 to 1
  /// As above; 1 if the systems score the same on every sample, where sacreBLEU says 1 / (1 + n).
  double p_value = 1;
};

/// Fills `sample` with line numbers.
using DrawSample = std::function<void(std::span<i64> sample)>;

/// Compares two systems under each metric, on the same `samples` samples for all. Errors: no lines; no samples.
std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples,
                                         const DrawSample& draw);
/// The same with samples that are drawn at random.
std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples, u64 seed);

}  // namespace orrery::translate
