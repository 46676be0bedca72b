// Chapter 0. A wrong answer to exercise 0.5: the mean of -ln p over the tokens, and not over the labels.
// Expect: FAILED  loss and accuracy by frequency
#include <algorithm>
#include <cmath>
#include <map>

#include "core/tensor_ops.h"

using namespace orrery;

struct Baseline {
  double loss = 0, accuracy = 0;
};

// How often each token occurs, without padding.
std::map<i32, double> counts_of(const Tensor& labels, i32 padding) {
  std::map<i32, double> counts;
  for (i64 i = 0; i < labels.count(); ++i)
    if (labels.at(i) != padding) ++counts[static_cast<i32>(labels.at(i))];
  return counts;
}

Baseline my_uniform(const Tensor& labels, i64 words, i32 padding) {
  if (counts_of(labels, padding).empty()) return {};
  const auto n = static_cast<double>(words);
  return {.loss = std::log(n), .accuracy = 1 / n};
}

Baseline my_by_frequency(const Tensor& labels, i32 padding) {
  Baseline baseline;
  double total = 0;
  const std::map<i32, double> counts = counts_of(labels, padding);
  for (const auto& [token, count] : counts) total += count;
  for (const auto& [token, count] : counts) {
    const double p = count / total;
    baseline.loss -= std::log(p) / static_cast<double>(counts.size());
    baseline.accuracy = std::max(baseline.accuracy, p);
  }
  return baseline;
}
