// Chapter 0. A wrong answer to exercise 0.3: the sign of the logarithm.
// Expect: the number is -0.407605964, should be 0.407605964
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_loss(const std::vector<double>& scores, size_t wanted) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (const double score : scores) total += std::exp(score - largest);
  return scores[wanted] - largest - std::log(total);
}
