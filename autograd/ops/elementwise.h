// Chapter 3. Powers, exponentials, logarithms and roots of each element.
//
// Serves: autograd/ops/elementwise.cpp
#pragma once

#include "autograd/variable.h"

namespace orrery {

Variable pow(const Variable& x, double exponent);
Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sqrt(const Variable& x);

}  // namespace orrery
