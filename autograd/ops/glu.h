// Chapter 3. The gated linear unit.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// a sigmoid(b) for x = [a | b], [..., 2 C] to [..., C]. Error: an odd number of columns.
Variable glu(const Variable& x);

}  // namespace orrery
