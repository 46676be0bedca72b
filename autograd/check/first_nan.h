// Chapter 3. First NaN: which operation made the first number that is not finite, and where its inputs came from.
//
// A NaN spreads: when it appears in the loss, it is far from its origin. While all numbers are finite, a training loop
// only checks the loss and the gradients. If one of these is not finite, it stops before the optimiser's step. The
// parameters are then unchanged, so the same pass can be run again, now with an observer that checks every number. All
// of this is one line, between backward and step:
//   check_finite(loss.item(), adam.parameters(), [&] { return loss_of(batch, step); });
// The result is the first operation, in forward order, whose output is worse than its inputs (infinity is worse than
// any number, NaN is worse than infinity). Parameters do not count as inputs here: no operation made them, so the first
// one that passes on a parameter's NaN is reported. If forward is finite, the same in backward order.
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
  i64 first_non_finite = -1;  ///< the first element, in row order, that is not finite; -1 if all are

  bool finite() const { return first_non_finite < 0; }
  /// 0: finite; 1: with infinity; 2: with NaN.
  int severity() const {
    if (nans > 0) return 2;
    return infinities > 0 ? 1 : 0;
  }
};
ValueRange range_of(const Tensor& x);
/// "[2, 3] min -1.5 max 2, 1 NaN, first at [0, 2]".
std::ostream& operator<<(std::ostream& out, const ValueRange& range);

/// Where a pass first left the finite numbers.
struct FirstNonFinite {
  bool found = false;
  bool in_backward = false;
  std::string operation;  ///< "exp"; for a sum of gradients that overflows, the operation whose output they belong to
  i64 index = -1;         ///< its position in execution order, from 0; forward and backward are counted separately
  std::string text;       ///< the full report: one line, then one for each input and output
};

/// Runs `loss` and, if that is finite, its backward, and looks at every number. `loss` must compute what the pass that
/// failed computed: the same batch, an equal Pass, unchanged parameters. Gradients of parameters are restored. An
/// observer that is already in force still sees everything.
FirstNonFinite find_first_non_finite(const std::function<Variable()>& loss);

/// For training loops, between backward and the optimiser's step. Error: the loss, or a gradient of `parameters`, is
/// not finite. The message then reports the first such number in `replay`, which computes the loss again.
void check_finite(double loss, const Parameters& parameters, const std::function<Variable()>& replay);

/// The text of find_first_non_finite(loss).
std::string explain_non_finite(const std::function<Variable()>& loss);

}  // namespace orrery
