// Chapter 7. Checks that the configurations of all models use.
#pragma once

#include <algorithm>

#include "core/dtype.h"

namespace orrery::nn::config_json {

/// Error of `operation`: the field `name` is not positive.
inline void check_positive(std::string_view operation, std::string_view name, i64 value) {
  check(value > 0, operation, name, " must be positive, not ", value);
}
/// Error of `operation`: the field `name` is not in [0, 1).
inline void check_probability(std::string_view operation, std::string_view name, double p) {
  check(p >= 0 && p < 1, operation, name, " must be in [0, 1), not ", p);
}

/// Errors of `operation`: sizes, a pad_id or shared embeddings that no translator can have.
template <class Config>
void check_vocabularies(std::string_view operation, const Config& config) {
  const i64 source = config.src_vocab_size, target = config.tgt_vocab_size;
  check_positive(operation, "src_vocab_size", source);
  check_positive(operation, "tgt_vocab_size", target);
  check(config.pad_id >= -1, operation, "pad_id must be a token's id, or -1 for none, not ", config.pad_id);
  check(config.pad_id < source && config.pad_id < target, operation, "pad_id (", config.pad_id,
        ") must be below both vocabulary sizes (", source, " and ", target, ")");
  check(!config.share_embeddings || source == target, operation,
        "share_embeddings needs one vocabulary, but the sizes are ", source, " and ", target);
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
