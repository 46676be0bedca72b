// Chapter 9. The measurements behind the claims, by the file that makes them.
#pragma once

#include "apps/measure/claims/claims.h"

namespace orrery::claims {

// positions.cpp: order, and what lies beyond the trained length.
Finding order_needs_positions(const Run& run);
Finding learned_equals_sinusoidal(const Run& run);
Finding sinusoidal_extrapolates(const Run& run);
Finding learned_do_not_extrapolate(const Run& run);

// cost.cpp: operations, counted.
Finding quadratic_operations(const Run& run);

// recipes.cpp: what the paper's training is made of, and mistakes in it.
Finding label_smoothing(const Run& run);
Finding gradients_at_the_start(const Run& run);
Finding flipped_mask(const Run& run);

}  // namespace orrery::claims
