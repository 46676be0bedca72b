// Chapter 6. The table of proofs for operations: what `orrery gradcheck` and the tests check.
#pragma once

#include "autograd/check/gradcheck.h"

namespace orrery {

/// At least one sample of every operation that autograd/ops.h lists; a test compares the two lists.
const std::vector<Sample>& operation_samples();

}  // namespace orrery
