// Chapter 3. Drawing the numbers for a gradient check: again, if too many are at kinks or a leaf's gradient is all 0.
//
// A draw is rejected only if nothing worse was found, and a coordinate counts as a kink only where the numeric slopes
// show one. So a wrong backward that differs at a compared coordinate with a derivative fails at once.
#include <algorithm>

#include "autograd/check/gradcheck.h"

namespace orrery {
namespace {

bool shows_nothing(const GradcheckReport& report) {
  return !report.problems.empty() && report.failures.empty() &&
         std::all_of(report.problems.begin(), report.problems.end(), [](const GradcheckProblem& problem) {
           return problem.check == GradientCheck::kinks || problem.check == GradientCheck::vacuous;
         });
}

}  // namespace

DrawnReport gradcheck(const Sample& sample, u64 seed, NumericSlopes* known) {
  constexpr i64 most_redrawn = 8;
  constexpr u64 between = 0xD1B54A32D192ED03;  // odd, so that no two draws are the same
  DrawnReport drawn{.report = {}, .seed = seed};
  for (;; ++drawn.redrawn, drawn.seed += between) {
    if (known) known->clear();
    GradcheckOptions options = sample.options;
    options.seed = drawn.seed;
    drawn.report = gradcheck(sample.build(f64, drawn.seed), options, known);
    if (!shows_nothing(drawn.report) || drawn.redrawn == most_redrawn) return drawn;
  }
}

}  // namespace orrery
