// Chapter 7. Exercise 7.8: top-p sampling.
//
// p has the probability of each token. Keep the likeliest ones: the fewest that add up to top_p or more. Scale them so
// that they add up to 1, and draw one with u, a random number from [0, 1). Go from the likeliest on and add up the
// scaled probabilities; return the first token at which the sum exceeds u. Of equally likely tokens the smaller number
// comes first.
// Grade it:  apps/run exercise 7.8
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

size_t my_sample(const std::vector<double>& p, double top_p, double u) {
  return 0;  // YOUR CODE
}
