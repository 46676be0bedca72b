// Chapter 3. Is f32 right? Every leaf by its own scale, and a mistake told from rounding.
//
// f64 is the judge, and starts from the numbers of f32. A gradient that is everywhere within 1e-6 of its leaf's largest
// is right. One that is not may still be: where terms cancel, as in p - 1 of a class that is nearly certain, what they
// leave is their rounding. To tell the two apart the leaf is looked at again at 16 neighbours of the draw, every input
// and dL/dy moved by about a thousandth of itself: there rounding falls to the one side or the other, while a mistake
// stays what it is. So of each element
//   |mean difference| <= 1e-6 max |g| + 4 (standard deviation of the differences)
// must hold over the neighbours. (A gradient that is zero by declaration has no scale of its own: 1e-4 of the largest
// of all leaves stands for it.) That a number's rounding shows when it is computed again from numbers a little off is
// due to Vignes, "Discrete stochastic arithmetic for validating results of numerical software" (2004).
// Serves: autograd/check/proof.h
#pragma once

#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery {

/// What f32 differs from f64 by at one draw of a sample.
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

/// The largest magnitude; infinity where anything is not a number, which no comparison would find.
double largest_magnitude(const std::vector<Tensor>& tensors);

}  // namespace orrery
