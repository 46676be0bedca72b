// Chapter 8. A wrong answer to exercise 8.3: the sum is brought to the new largest score, the output is not.
// Expect: FAILED  rising scores
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyRunningSoftmax {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0, output = 0;

  void add(double score, double value) {
    const double now = std::max(largest, score);
    if (std::isinf(now)) return;
    sum = std::exp(largest - now) * sum + std::exp(score - now);
    output += std::exp(score - now) * value;
    largest = now;
  }
  double result() const { return sum == 0 ? 0 : output / sum; }
};
