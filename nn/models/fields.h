// Chapter 7. Fields: what a configuration says of its fields, once for all who ask.
//
//   template <class F>
//   void for_each_field(MyConfig& config, F&& field) {
//     field({"d_model", Rule::positive, 12288, "Width of the model"}, config.d_model);
//     ...
//   }
// From this come the text in files and its reading (nn/models/config_json.h), the check of each field on its own
// (`check_fields`), and the options of commands (apps/training/options.h). The number of parameters follows from
// the model's own constructor (`counted`).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/random.h"
#include "nn/module.h"

namespace orrery::nn {

/// What a field may be, on its own.
enum class Rule { any, positive, probability };

struct Field {
  const char* name;  ///< in files
  Rule rule = Rule::any;
  i64 most_offered = 0;   ///< the largest number that an option of a command takes
  const char* help = "";  ///< of this option
  Field(const char* name, Rule rule = Rule::any, i64 most_offered = 0, const char* help = "")
      : name(name), rule(rule), most_offered(most_offered), help(help) {}
};

namespace config_json {

/// Error of `operation`: the field `name` is not positive, or beyond what a size may be.
inline void check_positive(std::string_view operation, std::string_view name, i64 value) {
  check(value > 0, operation, name, " must be positive, not ", value);
  check(value <= std::numeric_limits<i32>::max(), operation, name, " must be below 2^31, not ", value);
}
/// Error of `operation`: the field `name` is not in [0, 1).
inline void check_probability(std::string_view operation, std::string_view name, double p) {
  check(p >= 0 && p < 1, operation, name, " must be in [0, 1), not ", p);
}

/// Errors of `operation`: a field breaks its rule. Fields that fit only together are the configuration's own check.
template <class Config> void check_fields(std::string_view operation, Config config) {
  const auto check_number = [&](const Field& field, const auto& value) {
    if (field.rule == Rule::positive) check_positive(operation, field.name, static_cast<i64>(value));
    if (field.rule == Rule::probability) check_probability(operation, field.name, static_cast<double>(value));
  };
  for_each_field(config, [&]<class T>(const Field& field, T& value) {
    if constexpr (std::is_arithmetic_v<T>) check_number(field, value);
    if constexpr (std::is_same_v<T, std::optional<double>>)
      if (value) check_number(field, *value);
  });
}

/// Errors of `operation`: a pad_id or shared embeddings that no translator can have.
template <class Config> void check_vocabularies(std::string_view operation, const Config& config) {
  const i64 source = config.src_vocab_size, target = config.tgt_vocab_size;
  check(config.pad_id >= -1, operation, "pad_id must be a token's id, or -1 for none, not ", config.pad_id);
  check(config.pad_id < source && config.pad_id < target, operation, "pad_id (", config.pad_id,
        ") must be below both vocabulary sizes (", source, " and ", target, ")");
  check(!config.share_embeddings || source == target, operation,
        "share_embeddings needs one vocabulary, but the sizes are ", source, " and ", target);
}

/// `config`, for initialising a member with it. Errors: those of `config.validate()`.
template <class Config> const Config& valid(const Config& config) {
  config.validate();
  return config;
}

/// A number of parameters as an integer: exact up to 2^53, and 2^53 if there are more.
inline i64 whole(double count) { return static_cast<i64>(std::min(count, 0x1p53)); }

/// The number of parameters of Model(config), or 2^53 if there are more. What is counted are models whose tensors have
/// shapes, but no memory: of one layer, and of two, since `layers` are the fields that say how often a layer is
/// repeated. Errors: those of the constructor, and a tensor of 2^63 numbers or more.
template <class Model, class Config> i64 counted(Config config, std::initializer_list<i64 Config::*> layers = {}) {
  const Config whole_config = config;
  for (const auto number : layers) config.*number = 1;
  const auto count = [&] {
    Rng shapes = Rng::of_shapes();
    Model model(config, shapes);
    double total = 0;
    for (const NamedParameter& p : model.parameters()) total += static_cast<double>(p.value.value().count());
    return total;
  };
  const double base = count();
  double total = base;
  for (const auto number : layers) {
    config.*number = 2;
    total += static_cast<double>(whole_config.*number - 1) * (count() - base);
    config.*number = 1;
  }
  return whole(total);
}

}  // namespace config_json
}  // namespace orrery::nn
