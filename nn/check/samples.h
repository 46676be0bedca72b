// Chapter 7. The table of proofs for layers and models: what `orrery gradcheck` and the tests check.
#pragma once

#include "autograd/check/gradcheck.h"

namespace orrery::nn {

/// At least one sample of every module in nn/*.h; a test compares the two lists.
const std::vector<Sample>& module_samples();

}  // namespace orrery::nn
