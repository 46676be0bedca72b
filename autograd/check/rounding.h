// Chapter 3. Is f32 right? Each leaf is judged on its own scale, and mistakes are told from rounding.
//
// f64 is the reference, and starts from the numbers of f32. A gradient is right if it differs everywhere by at most
// 1e-6 of its leaf's largest. A larger difference may still be rounding: where terms cancel (p - 1 of a nearly certain
// class), only rounding is left. To decide, the leaf is compared again at 16 neighbours of the draw, in which every
// input and dL/dy is changed by about a thousandth of itself. There, rounding errors have either sign, while a mistake
// stays the same; and there is a limit to their size. So each element must satisfy, over the neighbours,
//   |mean difference| <= max(1e-6 max |g|, small change) + 4 (standard deviation of the differences)
//   |difference| <= max(1e-6 max |g|, what rounding can explain), in more than half of them
// The small change is what the leaf's gradient in f64 changes by if inputs and dL/dy change by 2^-20 of themselves: a
// constant that f32 rounds, such as 1 / sqrt(d_k), has an error of the same sign at all neighbours. The second line
// finds what is rounded to fewer digits than f32 has. What rounding can explain is the larger of two numbers: the small
// change, and 2^-18 of the largest norm of a tensor in the f64 pass (of a leaf, of dL/dy, of what an operation returns
// or adds to a gradient), since the terms that an operation adds up inside are not visible. Not every neighbour has to
// satisfy it, because at a kink f32 and f64 may be on different sides.
// (A gradient that is declared zero has no scale of its own; it is compared with 1e-4 of the largest gradient of all
// leaves.) Recomputing with slightly perturbed inputs to reveal rounding follows Vignes, "Discrete stochastic
// arithmetic for validating results of numerical software" (2004).
#pragma once

#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery {

/// By how much f32 differs from f64 at one draw of a sample.
struct SinglePrecision {
  /// The largest error of a gradient, divided by its leaf's max |g| (by that of all leaves if it is declared zero).
  double gradient_error = 0;
  std::string worst_at;     ///< the leaf
  double output_error = 0;  ///< the same of the output, divided by its max |y|
  i64 rounded = 0;          ///< leaves, and the output, beyond 1e-6 that were shown to be rounding
  bool beyond_f32 = false;  ///< a norm of the f64 pass exceeds 2^100, so f32 may overflow: nothing was compared
  /// Which leaf is wrong, where and by how much, a line each; "" when none is.
  std::string problem;
};

/// Compares every gradient, and the output, at the draw of `seed`, with every leaf multiplied by `factor`. With a
/// factor other than 1, functions saturate, and rounding may be the same everywhere around the draw (1 - y^2 for a y
/// that f32 rounds to 1). So the limit there is 4 times what rounding can explain, or 64 times if weights are among the
/// leaves. Error: the sample has other leaves in f32.
SinglePrecision compare_precisions(const Sample& sample, u64 seed, double factor = 1);

/// The largest norm of a tensor in a pass: of a leaf, of dL/dy, of what an operation returns or adds to a gradient.
double largest_norm(const Checkable& f, const Tensor& dy);

/// The largest magnitude; infinity if any element is NaN, since comparisons with NaN are false.
double largest_magnitude(const std::vector<Tensor>& tensors);
/// True if every element is 0 up to rounding. A difference of two nearly equal numbers keeps the rounding of its terms:
/// in f32, where these may be in the hundreds, up to 1e-3.
bool is_zero(const Tensor& x);

}  // namespace orrery
