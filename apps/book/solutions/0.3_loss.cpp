// Chapter 0. Solution of exercise 0.3: from scores to a loss.
//
// A model gives one score to each token. Turn the scores into probabilities, p_i = e^{score_i} / sum_j e^{score_j},
// and return the loss -ln p of the token `wanted`. Plain C++ is enough: std::exp and std::log.
// Scores may be large: e^1000 is more than a double can hold. What happens to the probabilities if the same number is
// subtracted from all scores?
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_loss(const std::vector<double>& scores, size_t wanted) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (const double score : scores) total += std::exp(score - largest);
  return std::log(total) - (scores[wanted] - largest);  // -ln(e^{score - largest} / total)
}
