// Chapter 9. `orrery bench fused`: each fused operation, compared with its composed form, the one to read.
//
// Both forms compute the same, as the tests of autograd/ops/ show. The fused form does in one pass over memory what
// takes several operations in the composed form. Times are for forward and backward together, at the sizes of a
// configuration's decoder; memory is what forward leaves for backward, its result included.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/measure/bench/configs.h"
#include "autograd/variable.h"

namespace orrery {

/// One computation in two forms: functions of the same leaves, whose gradients a backward pass fills.
struct FusedPair {
  std::string name;         ///< of the fused operation
  std::string composed_of;  ///< the operations of the composed form
  std::vector<Variable> leaves;
  std::function<Variable()> composed, fused;
};
/// Fused operations of autograd/ops.h, each as a decoder layer of this configuration calls it, or at the same sizes if
/// no decoder layer does. Not among them: convolution, and the feed-forward network with GELU's approximation.
std::vector<FusedPair> fused_pairs(const BenchConfig& config);

}  // namespace orrery
