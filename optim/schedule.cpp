// Chapter 5. Schedules: the formulas.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace orrery::optim {
namespace {

void check_step(i64 step, std::string_view schedule) {
  check(step >= 1, schedule, "steps are counted from 1, got ", step);
}

void check_warmup(i64 warmup, i64 least, std::string_view schedule) {
  check(warmup >= least, schedule, "warmup must be at least ", least, ", got ", warmup);
}

}  // namespace

double constant(i64 step, double rate) {
  check_step(step, "constant");
  return rate;
}

double noam(i64 step, i64 d_model, i64 warmup) {
  check_step(step, "noam");
  check_warmup(warmup, 1, "noam");
  check(d_model >= 1, "noam", "d_model must be positive, got ", d_model);
  const double t = static_cast<double>(step), w = static_cast<double>(warmup);
  return std::pow(d_model, -0.5) * std::min(std::pow(t, -0.5), t * std::pow(w, -1.5));
}

double inverse_sqrt(i64 step, double peak, i64 warmup, double start_rate) {
  check_step(step, "inverse_sqrt");
  check_warmup(warmup, 1, "inverse_sqrt");
  const double t = static_cast<double>(step), w = static_cast<double>(warmup);
  return step < warmup ? start_rate + (peak - start_rate) * t / w : peak * std::sqrt(w / t);
}

double warmup_cosine(i64 step, double peak, i64 warmup, i64 total, double floor) {
  check_step(step, "warmup_cosine");
  check_warmup(warmup, 0, "warmup_cosine");
  check(total > warmup, "warmup_cosine", "total (", total, ") must be larger than warmup (", warmup, ")");
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  const double done = static_cast<double>(std::min(step, total) - warmup) / static_cast<double>(total - warmup);
  return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

double linear_cooldown(i64 step, i64 total, i64 from) {
  check_step(step, "linear_cooldown");
  check(from >= 0 && from <= total, "linear_cooldown", "from (", from, ") must be in [0, total = ", total, "]");
  if (step <= from) return 1;
  return static_cast<double>(std::max<i64>(0, total + 1 - step)) / static_cast<double>(total + 1 - from);
}

}  // namespace orrery::optim
