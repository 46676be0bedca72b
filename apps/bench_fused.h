// Chapter 9. `orrery bench fused`: each fused operation beside its composed form, the one to read.
//
// Both forms compute the same; the tests of autograd/ops/ say so. Fused, what several operations do is one pass over
// memory. Times are of forward and backward together, at the sizes of the paper's base model.
// Read next: apps/bench_fused.cpp
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "autograd/variable.h"

namespace orrery {

/// One computation in two forms: functions of the same leaves, whose gradients a backward pass fills.
struct FusedPair {
  std::string name;         ///< of the fused operation
  std::string composed_of;  ///< the operations of the composed form
  std::vector<Variable> leaves;
  std::function<Variable()> composed, fused;
};
/// Every fused operation of autograd/ops.h that encoder-decoders train with, for `tokens` tokens; a multiple of 32.
std::vector<FusedPair> fused_pairs(i64 tokens);

struct FusedTimes {
  std::string name, composed_of;
  double composed = 0, fused = 0;  ///< seconds of the fastest run, forward and backward
};
FusedTimes measure_pair(const FusedPair& pair);
/// At most 100 columns.
void print_fused(std::ostream& out, const std::vector<FusedTimes>& rows);

}  // namespace orrery
