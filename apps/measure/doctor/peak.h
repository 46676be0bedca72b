// Chapter 9. The most arithmetic that a CPU can do: multiplications and additions of registers, and nothing else.
//
// No product can be faster, so this is what products are measured by. It is measured, since a CPU's clock depends on
// its temperature, on its other cores and on the instructions themselves, and a virtual machine does not tell it.
#pragma once

#include "apps/program/machine.h"

namespace orrery {

/// Operations per second of f32, with vectors of `level`, which the CPU must have: the sum over as many threads as
/// `cores`, which compute side by side for `seconds`, each at the speed of its fastest run.
double peak_speed(VectorLevel level, int cores, double seconds);

}  // namespace orrery
