// Chapter 7. Configurations as JSON text: what the models' configurations share.
//
// A configuration says with for_each_field(config, field) which fields it has, and calls field(name, value) for each;
// reading, writing and the list of known names are made of it. Enumerations are written by name.
// Read next: nn/models/transformer.h
#pragma once

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/ops/norm_rows.h"
#include "nn/files/config_rules.h"
#include "nn/layers/feed_forward.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn::config_json {

using Json = nlohmann::ordered_json;

/// How the values of enumerations are written, in their order.
constexpr std::array<std::string_view, 3> names(Activation) { return {"relu", "gelu", "gelu_tanh"}; }
constexpr std::array<std::string_view, 2> names(Positions) { return {"sinusoidal", "learned"}; }
constexpr std::array<std::string_view, 4> names(Init) {
  return {"xavier", "pytorch_linear", "normal_001", "normal_002"};
}
constexpr std::array<std::string_view, 3> names(LayerNormForm) {
  return {"root_of_variance_plus_eps", "std_plus_eps", "unbiased_std_plus_eps"};
}

template <class T>
Json written(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return names(value)[static_cast<size_t>(value)];
  else
    return value;
}
template <class T>
Json written(const std::optional<T>& value) {
  return value ? written(*value) : Json(nullptr);
}

/// Reads fields of one object; errors name `operation` and the field.
class Reader {
 public:
  Reader(std::string_view operation, const Json& json) : operation_(operation), json_(json) {}

  /// Sets `value` if the object has the field.
  template <class T>
  void operator()(const std::string& name, T& value) {
    known_.push_back(name);
    if (json_.contains(name)) read(json_.at(name), name, value);
  }
  /// Every field must have been asked for.
  void check_all_known() const {
    for (const auto& [name, value] : json_.items()) {
      check(std::find(known_.begin(), known_.end(), name) != known_.end(), operation_, "there is no field \"", name,
            "\"");
    }
  }

 private:
  void read(const Json& json, std::string_view name, bool& value) const {
    check(json.is_boolean(), operation_, name, " must be true or false, not ", json.dump());
    value = json.get<bool>();
  }
  template <std::integral T>
  void read(const Json& json, std::string_view name, T& value) const {
    check(json.is_number_integer() && json.get<double>() >= -1 && json.get<double>() <= std::numeric_limits<i32>::max(),
          operation_, name, " must be a whole number below 2^31, not ", json.dump());
    value = json.get<T>();
  }
  void read(const Json& json, std::string_view name, double& value) const {
    check(json.is_number(), operation_, name, " must be a number, not ", json.dump());
    value = json.get<double>();
  }
  template <class T>
  void read(const Json& json, std::string_view name, std::optional<T>& value) const {
    value.reset();
    if (!json.is_null()) read(json, name, value.emplace());
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(const Json& json, std::string_view name, T& value) const {
    const auto all = names(value);
    const auto found = std::find(all.begin(), all.end(), json.is_string() ? json.get<std::string>() : "");
    check(found != all.end(), operation_, name, " cannot be ", json.dump());
    value = static_cast<T>(found - all.begin());
  }

  std::string_view operation_;
  const Json& json_;
  std::vector<std::string> known_;
};

/// Every field as JSON text.
template <class Config>
std::string text_of(Config config) {
  Json json;
  for_each_field(config, [&](const char* name, const auto& value) { json[name] = written(value); });
  return json.dump();
}

/// The valid configuration that `text` describes; absent fields keep their defaults.
template <class Config>
Config config_of(const std::string& text, std::string_view operation) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(json.is_object(), operation, "is not a JSON object");
  Config config;
  Reader reader(operation, json);
  for_each_field(config, reader);
  reader.check_all_known();
  config.validate();
  return config;
}

}  // namespace orrery::nn::config_json
