// Chapter 3. First NaN: which operation made the first number that is not finite, and where its inputs came from.
//
// A NaN spreads: whoever sees it in the loss sees it far from where it arose. While all is finite, a training loop pays
// for nothing but a look at the loss and at the gradient's norm. When one of them is not finite it stops before the
// optimiser's step; the parameters are then unchanged and a pass is a value, so that the same pass can be run once
// more, now with an observer that looks at every number. All of it is one line, between backward and step:
//   check_finite(loss.item(), adam.parameters(), [&] { return loss_of(batch, step); });
// Forward order decides: the first operation whose output is not finite though no operation's output before it was
// worse (infinity is worse than any number, NaN worse than infinity). If forward is finite, the same in backward order.
// Serves: autograd/check/proof.h
#pragma once

#include <functional>
#include <string>

#include "autograd/variable.h"

namespace orrery {

/// What a tensor holds.
struct ValueRange {
  Shape shape;
  double min = 0, max = 0;  ///< of the finite elements; 0 if there are none
  i64 infinities = 0, nans = 0;
  i64 first_non_finite = -1;  ///< element that is the first not to be finite, in row order; -1 if all are

  bool finite() const { return first_non_finite < 0; }
  /// 0: finite; 1: with infinity; 2: with NaN.
  int severity() const { return nans > 0 ? 2 : infinities > 0 ? 1 : 0; }
};
ValueRange range_of(const Tensor& x);
/// "[2, 3] min -1.5 max 2, 1 NaN, first at [0, 2]".
std::ostream& operator<<(std::ostream& out, const ValueRange& range);

/// Where a pass first left the finite numbers.
struct FirstNonFinite {
  bool found = false;
  bool in_backward = false;
  std::string operation;  ///< "exp"; for a sum of gradients that overflows, the operation whose output they belong to
  i64 index = -1;    ///< its place in the order in which operations ran, from 0, forward and backward counted apart
  std::string text;  ///< the whole story: one line, then one for each input and output
};

/// Runs `loss` and, if that is finite, its backward, and looks at every number. `loss` must compute what the pass that
/// failed computed: the same batch, an equal Pass, unchanged parameters. Gradients of parameters are afterwards what
/// they were. An observer that is in force goes on seeing everything, before this one does.
FirstNonFinite find_first_non_finite(const std::function<Variable()>& loss);

/// For training loops, after backward and before the optimiser's step, which may then be made. Error: the loss is not
/// finite, or a gradient of `parameters` is not; then comes the story of the first such number in `replay`, which
/// computes the loss once more.
void check_finite(double loss, const Parameters& parameters, const std::function<Variable()>& replay);

/// The text alone: what a training loop adds to its error.
std::string explain_non_finite(const std::function<Variable()>& loss);

}  // namespace orrery
