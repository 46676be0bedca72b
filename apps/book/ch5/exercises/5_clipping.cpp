// Chapter 5. Exercise 5.5: clip all gradients by their common norm.
//
// Shorten gradients that are too long together, so that one bad batch cannot undo what the others taught. The norm is
// the root of the sum of the squares of all elements of all gradients. If it is larger than max_norm, multiply every
// gradient by max_norm / norm; otherwise change nothing. Return the norm before clipping. An undefined gradient
// (defined() is false) is skipped. sum_of_squares(x) and scale_in_place(x, factor) are at hand.
// Grade it:  apps/run exercise 5.5
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_clip(std::vector<Tensor>& gradients, double max_norm) {
  return max_norm;  // YOUR CODE: neither measured nor clipped
}
