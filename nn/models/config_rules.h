// Chapter 7. Checks that the configurations of all models use.
//
// Serves: nn/models/transformer.h
#pragma once

#include <algorithm>

#include "core/dtype.h"

namespace orrery::nn::config_json {

/// What the field `name` must be.
inline void check_positive(std::string_view operation, std::string_view name, i64 value) {
  check(value > 0, operation, name, " must be positive, not ", value);
}
inline void check_probability(std::string_view operation, std::string_view name, double p) {
  check(p >= 0 && p < 1, operation, name, " must be in [0, 1), not ", p);
}

/// `config`, for initialising a member with it. Errors: those of `config.validate()`.
template <class Config>
const Config& valid(const Config& config) {
  config.validate();
  return config;
}

/// A number of parameters as an integer: exact up to 2^53, and 2^53 if there are more.
inline i64 whole(double count) { return static_cast<i64>(std::min(count, 0x1p53)); }

}  // namespace orrery::nn::config_json
