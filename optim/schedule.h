// Chapter 5. Schedules: the learning rate as a plain function of the step. The first step is number 1.
//
// Early steps are short (warm-up): one long step can make all positions of a post-norm stack equal (chapter 7). Late
// steps are short, so that the parameters come to rest. Schedules can be multiplied:
//   noam(step, 512, 4000) * linear_cooldown(step, n, n / 2)
// Errors: a step below 1; a d_model, warmup, total or from that is out of range.
#pragma once

#include "core/dtype.h"

namespace orrery::optim {

/// The same rate at every step.
double constant(i64 step, double rate);

/// d_model^-0.5 min(step^-0.5, step warmup^-1.5): rises linearly until step `warmup`, then falls with the root of the
/// step. Vaswani et al., equation 3.
double noam(i64 step, i64 d_model, i64 warmup);

/// From `start_rate` linearly to `peak` at step `warmup`, then peak sqrt(warmup / step). The same as fairseq's
/// inverse_sqrt.
double inverse_sqrt(i64 step, double peak, i64 warmup, double start_rate = 0);

/// Linearly from 0 to `peak` at step `warmup`, then along half a cosine down to `floor` at step `total`, where it
/// stays.
double warmup_cosine(i64 step, double peak, i64 warmup, i64 total, double floor = 0);

/// A factor that is 1 until step `from` and then falls linearly to 0 at step total + 1, so that step `total` still
/// moves.
double linear_cooldown(i64 step, i64 total, i64 from);

}  // namespace orrery::optim
