// Chapter 3. Is f32 right? Each leaf is judged on its own scale, and mistakes are told from rounding.
//
// f64 is the reference, and starts from the numbers of f32. A gradient is right if it differs everywhere by at most
// 1e-6 of its leaf's largest. A larger difference may still be rounding: where terms cancel (p - 1 of a nearly certain
// class), only rounding is left. To decide, the leaf is compared again at 16 neighbours of the draw, in which every
// input and dL/dy is changed by about a thousandth of itself. There, rounding errors have either sign, while a mistake
// stays the same. So each element must satisfy, over the neighbours,
//   |mean difference| <= 1e-6 max |g| + 4 (standard deviation of the differences)
// (A gradient that is declared zero has no scale of its own; it is compared with 1e-4 of the largest gradient of all
// leaves.) Recomputing with slightly perturbed inputs to reveal rounding follows Vignes, "Discrete stochastic
// arithmetic for validating results of numerical software" (2004).
// Serves: autograd/check/proof.h
#pragma once

#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery {

/// By how much f32 differs from f64 at one draw of a sample.
struct SinglePrecision {
  /// Of a gradient, as a part of its leaf's largest (of the largest of all leaves where it is zero by declaration).
  double gradient_error = 0;
  std::string worst_at;     ///< the leaf
  double output_error = 0;  ///< as a part of the output's largest number
  i64 rounded = 0;          ///< leaves, and the output, beyond 1e-6 that the neighbours showed to be rounding
  /// Which leaf is wrong, where and by how much, a line each; "" when none is.
  std::string problem;
};

/// Compares every gradient, and the output, at the draw of `seed`. Error: the sample has other leaves in f32.
SinglePrecision compare_precisions(const Sample& sample, u64 seed);

/// The largest magnitude; infinity if any element is NaN, since comparisons with NaN are false.
double largest_magnitude(const std::vector<Tensor>& tensors);

}  // namespace orrery
