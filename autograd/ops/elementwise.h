// Chapter 3. Powers, exponentials, logarithms and roots of each element.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// x^exponent. NaN where x is negative and the exponent is not a whole number.
Variable pow(const Variable& x, double exponent);
/// e^x.
Variable exp(const Variable& x);
/// ln x: -infinity where x is 0, NaN where x is negative.
Variable log(const Variable& x);
/// NaN where x is negative. Where x is 0, the derivative is infinite.
Variable sqrt(const Variable& x);

}  // namespace orrery
