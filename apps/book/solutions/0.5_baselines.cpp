// Chapter 0. Solution of exercise 0.5: two models that know nothing.
//
// A loss says little without another to compare it with. Work out what two models that never read the source can reach.
// `labels` (i32, any shape) are the tokens that have to be said; those equal to `padding` do not count.
// - my_uniform: each of `words` tokens has the same probability, and the model says one of them at random.
// - my_by_frequency: each token's probability is its fraction of the counted labels; the model always says the
//   most frequent one.
// Return the loss (the mean of -ln p over the labels that count) and the accuracy (the fraction of them that is said
// right; for the first model, its expectation). If no label counts, both are 0.
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
    baseline.loss -= p * std::log(p);
    baseline.accuracy = std::max(baseline.accuracy, p);
  }
  return baseline;
}
