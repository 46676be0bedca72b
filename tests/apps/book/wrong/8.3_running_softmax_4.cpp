// Chapter 8. A wrong answer to exercise 8.3: every score and every value is kept.
// Expect: FAILED  three numbers, whatever the length
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyRunningSoftmax {
  std::vector<std::pair<double, double>> stream;

  void add(double score, double value) { stream.emplace_back(score, value); }
  double result() const {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, output = 0;
    for (const auto& [score, value] : stream) largest = std::max(largest, score);
    if (std::isinf(largest)) return 0;
    for (const auto& [score, value] : stream) {
      sum += std::exp(score - largest);
      output += std::exp(score - largest) * value;
    }
    return output / sum;
  }
};
