// Chapter 8. Exercise 8.3: softmax of a stream.
//
// Scores and values go by one after another: add(score, value). At any time, result() is the mean of the values so far,
// weighted by the softmax of their scores; 0 before the first. Keep three numbers, whatever the length: the struct has
// room for three doubles and nothing else. Scores may be in the thousands, or -infinity for what a mask hides.
// Grade it:  apps/run exercise 8.3
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyRunningSoftmax {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0, output = 0;

  void add(double score, double value) {
    sum = 1;  // YOUR CODE: this is a sum, whatever the scores
    output += value;
  }
  double result() const { return sum == 0 ? 0 : output / sum; }
};
