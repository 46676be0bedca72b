// Chapter 0. Exercise 0.3: from scores to a loss.
//
// A model gives one score to each token. Turn the scores into probabilities, p_i = e^{score_i} / sum_j e^{score_j},
// and return the loss -ln p of the token `wanted`. Plain C++ is enough: std::exp and std::log.
// Scores may be large: e^1000 is more than a double can hold. A probability may be too small for a double; its loss is
// still finite. What happens to the probabilities if the same number is subtracted from all scores?
// Grade it:  apps/run exercise 0.3
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_loss(const std::vector<double>& scores, size_t wanted) {
  return scores[wanted];  // YOUR CODE: this is a score, not a loss
}
