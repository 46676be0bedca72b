// Chapter 0. A wrong answer to exercise 0.3: nothing is subtracted before the exponential.
// Expect: the number is nan
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_loss(const std::vector<double>& scores, size_t wanted) {
  double total = 0;
  for (const double score : scores) total += std::exp(score);
  return -std::log(std::exp(scores[wanted]) / total);
}
