// Chapter 4. The textbook form of layer normalisation: one row by its formulas (autograd/ops/layer_norm.h).
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "autograd/ops/layer_norm.h"

namespace orrery::small {

inline constexpr std::array norm_forms{LayerNormForm::root_of_variance_plus_eps, LayerNormForm::std_plus_eps,
                                       LayerNormForm::unbiased_std_plus_eps};

/// y_i = (x_i - mean) / divisor, before weight and bias.
struct TextbookNorm {
  double mean, divisor;
  double of(double x) const { return (x - mean) / divisor; }
};

inline TextbookNorm textbook_norm(const std::vector<double>& row, double eps, LayerNormForm form) {
  const auto n = static_cast<long double>(row.size());
  long double mean = 0, squares = 0;
  for (const double x : row) mean += x / n;
  for (const double x : row) squares += (x - mean) * (x - mean);
  const auto with_divisor = [&](long double divisor) {
    return TextbookNorm{static_cast<double>(mean), static_cast<double>(divisor)};
  };
  switch (form) {
    case LayerNormForm::root_of_variance_plus_eps: return with_divisor(std::sqrt(squares / n + eps));
    case LayerNormForm::std_plus_eps: return with_divisor(std::sqrt(squares / n) + eps);
    default: return with_divisor(std::sqrt(squares / (n - 1)) + eps);
  }
}

}  // namespace orrery::small
