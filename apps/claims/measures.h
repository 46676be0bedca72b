// Chapter 9. The measurements behind the claims, by the file that makes them.
//
// Serves: apps/toy/toy.cpp
#pragma once

#include "apps/claims/claims.h"

namespace orrery::claims {

// scores.cpp: dot products, their scale, softmax.
Finding variance_of_dot_products(const Run& run);
Finding scaled_variance(const Run& run);
Finding softmax_saturation(const Run& run);
Finding missing_scale(const Run& run);

// positions.cpp: order, and what lies beyond the trained length.
Finding equivariance(const Run& run);
Finding order_needs_positions(const Run& run);
Finding shift_is_linear(const Run& run);
Finding learned_equals_sinusoidal(const Run& run);
Finding sinusoidal_extrapolates(const Run& run);
Finding learned_do_not_extrapolate(const Run& run);
Finding distances_extrapolate(const Run& run);

// cost.cpp: operations and bytes, counted.
Finding quadratic_operations(const Run& run);
Finding linear_memory(const Run& run);

// recipes.cpp: what the paper's training is made of, and mistakes in it.
Finding label_smoothing(const Run& run);
Finding warmup_for_post_norm(const Run& run);
Finding pre_norm_without_warmup(const Run& run);
Finding gradients_at_the_start(const Run& run);
Finding flipped_mask(const Run& run);

// sum_loss.cpp: what a check of derivatives sees.
Finding sum_hides_softmax(const Run& run);

}  // namespace orrery::claims
