// Chapter 8. Solution of exercise 8.3: softmax of a stream.
//
// Scores and values go by one after another: add(score, value). At any time, result() is the mean of the values so far,
// weighted by the softmax of their scores; 0 before the first. Keep three numbers, whatever the length: the struct has
// room for three doubles and nothing else. Scores may be in the thousands, or -infinity for what a mask hides.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyRunningSoftmax {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0, output = 0;

  void add(double score, double value) {
    const double now = std::max(largest, score);
    if (std::isinf(now)) return;  // nothing but hidden keys so far
    const double a = std::exp(largest - now), weight = std::exp(score - now);
    sum = a * sum + weight;
    output = a * output + weight * value;
    largest = now;
  }
  double result() const { return sum == 0 ? 0 : output / sum; }
};
