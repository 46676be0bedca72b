// Chapter 7. The rows of the rivals in the table of proofs.
#pragma once

#include <vector>

#include "autograd/check/gradcheck.h"

namespace orrery::translate {

/// At least one sample of every layer and model of this folder.
const std::vector<Sample>& rival_samples();

}  // namespace orrery::translate
