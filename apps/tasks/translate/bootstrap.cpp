// Chapter 9. Paired bootstrap: scores on samples of the lines, their spread, and the p-value.
#include "apps/tasks/translate/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"

namespace orrery::translate {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// 95 % of the scores lie within the interval: one 40th of the sorted ones is left out at each end.
Spread spread_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const size_t left_out = scores.size() / 40;
  return {mean_of(scores), (scores[scores.size() - left_out - 1] - scores[left_out]) / 2};
}

Comparison comparison_of(double difference, const std::vector<double>& system, const std::vector<double>& baseline) {
  Comparison result{.difference = difference,
                    .system = spread_of(system),
                    .baseline = spread_of(baseline),
                    .higher = 0,
                    .p_value = 1};
  const auto samples = static_cast<double>(system.size());
  std::vector<double> differences;
  i64 higher = 0;
  for (size_t s = 0; s < system.size(); ++s) {
    differences.push_back(std::abs(system[s] - baseline[s]));
    higher += system[s] > baseline[s];
  }
  result.higher = static_cast<double>(higher) / samples;
  if (std::all_of(differences.begin(), differences.end(), [](double d) { return d == 0; })) return result;
  const double mean = mean_of(differences), observed = std::abs(difference);
  const auto exceeding =
      std::count_if(differences.begin(), differences.end(), [&](double d) { return d - mean > observed; });
  result.p_value = (static_cast<double>(exceeding) + 1) / (samples + 1);
  return result;
}

}  // namespace

std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples,
                                         const DrawSample& draw) {
  check(lines > 0 && samples > 0, "bootstrap", "needs lines and samples, not ", lines, " and ", samples);
  std::vector<i64> sample(static_cast<size_t>(lines));
  std::iota(sample.begin(), sample.end(), i64{0});
  std::vector<double> differences;
  for (const Paired& metric : metrics) differences.push_back(metric.system(sample) - metric.baseline(sample));
  std::vector<std::vector<double>> of_system(metrics.size()), of_baseline(metrics.size());
  for (i64 s = 0; s < samples; ++s) {
    draw(sample);
    for (size_t m = 0; m < metrics.size(); ++m) {
      of_system[m].push_back(metrics[m].system(sample));
      of_baseline[m].push_back(metrics[m].baseline(sample));
    }
  }
  std::vector<Comparison> result;
  for (size_t m = 0; m < metrics.size(); ++m)
    result.push_back(comparison_of(differences[m], of_system[m], of_baseline[m]));
  return result;
}

std::vector<Comparison> paired_bootstrap(const std::vector<Paired>& metrics, i64 lines, i64 samples, u64 seed) {
  Rng rng(seed);
  return paired_bootstrap(metrics, lines, samples, [&](std::span<i64> sample) {
    for (i64& line : sample) line = rng.integer(0, lines);
  });
}

}  // namespace orrery::translate
