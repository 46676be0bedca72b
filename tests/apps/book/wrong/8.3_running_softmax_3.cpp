// Chapter 8. A wrong answer to exercise 8.3: the factor is turned round, e^(new - old).
// Expect: FAILED  scores in the thousands
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
    const double a = std::isinf(largest) ? 0 : std::exp(now - largest), weight = std::exp(score - now);
    sum = a * sum + weight;
    output = a * output + weight * value;
    largest = now;
  }
  double result() const { return sum == 0 ? 0 : output / sum; }
};
