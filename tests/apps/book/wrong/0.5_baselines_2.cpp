// Chapter 0. A wrong answer to exercise 0.5: padding is counted among the labels.
// Expect: FAILED  by frequency, where 3 is padding
#include <algorithm>
#include <cmath>
#include <map>

#include "core/tensor_ops.h"

using namespace orrery;

struct Baseline {
  double loss = 0, accuracy = 0;
};

// How often each token occurs.
std::map<i32, double> counts_of(const Tensor& labels) {
  std::map<i32, double> counts;
  for (i64 i = 0; i < labels.count(); ++i) ++counts[static_cast<i32>(labels.at(i))];
  return counts;
}

Baseline my_uniform(const Tensor& labels, i64 words, i32) {
  if (counts_of(labels).empty()) return {};
  const auto n = static_cast<double>(words);
  return {.loss = std::log(n), .accuracy = 1 / n};
}

Baseline my_by_frequency(const Tensor& labels, i32) {
  Baseline baseline;
  double total = 0;
  const std::map<i32, double> counts = counts_of(labels);
  for (const auto& [token, count] : counts) total += count;
  for (const auto& [token, count] : counts) {
    const double p = count / total;
    baseline.loss -= p * std::log(p);
    baseline.accuracy = std::max(baseline.accuracy, p);
  }
  return baseline;
}
