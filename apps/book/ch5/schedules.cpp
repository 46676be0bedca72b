// Chapter 5. Schedules as numbers: the learning rate of some steps.
// Question: where does Noam's schedule reach its peak, how high is it, and what does a cool-down do to the end?
// Answer: at step `warmup`, where both terms of the minimum are equal, with (d_model warmup)^-1/2. Four times as many
//   steps later the rate is half of that; a cool-down takes it to almost 0 at the last step.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "optim/schedule.h"

using namespace orrery;

int main() {
  using namespace optim;
  constexpr i64 d_model = 512, warmup = 4000, total = 100000, from = 80000;
  std::cout << std::setprecision(4) << std::left << std::setw(10) << "step" << std::setw(12) << "noam" << std::setw(12)
            << "cool-down" << std::setw(12) << "product"
            << "warmup_cosine\n";
  for (const i64 step : {1, 4000, 16000, 90000, 100000}) {
    const double rate = noam(step, d_model, warmup), factor = linear_cooldown(step, total, from);
    std::cout << std::setw(10) << step << std::setw(12) << rate << std::setw(12) << factor << std::setw(12)
              << rate * factor << warmup_cosine(step, 0.0007, warmup, total) << '\n';
  }
  const double peak = noam(warmup, d_model, warmup);
  std::cout << "1 / sqrt(d_model warmup) = " << 1 / std::sqrt(static_cast<double>(d_model * warmup)) << '\n';

  bool right = std::fabs(peak * std::sqrt(static_cast<double>(d_model * warmup)) - 1) < 1e-12;
  right &= noam(warmup - 1, d_model, warmup) < peak && noam(warmup + 1, d_model, warmup) < peak;
  right &= std::fabs(noam(4 * warmup, d_model, warmup) / peak - 0.5) < 1e-12;
  right &= linear_cooldown(from, total, from) == 1 && linear_cooldown(total, total, from) < 1e-4;
  return right ? 0 : 1;
}
