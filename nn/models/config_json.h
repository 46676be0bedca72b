// Chapter 7. Configurations as JSON text, for all models.
//
// Reading, writing and the list of known names use `for_each_field` (nn/models/fields.h). Enumerations are written by
// name.
#pragma once

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autograd/ops/norm_rows.h"
#include "core/files/json.h"
#include "nn/layers/feed_forward.h"
#include "nn/models/fields.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn::config_json {

/// The names of the values of enumerations, in their order.
constexpr std::array<std::string_view, 3> names(Activation) { return {"relu", "gelu", "gelu_tanh"}; }
constexpr std::array<std::string_view, 2> names(Positions) { return {"sinusoidal", "learned"}; }
constexpr std::array<std::string_view, 4> names(Init) {
  return {"xavier", "pytorch_linear", "normal_001", "normal_002"};
}
constexpr std::array<std::string_view, 3> names(LayerNormForm) {
  return {"root_of_variance_plus_eps", "std_plus_eps", "unbiased_std_plus_eps"};
}

/// An enumeration is written by name, everything else as it is.
template <class T> auto written(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return names(value)[static_cast<size_t>(value)];
  else
    return value;
}
template <class T> auto written(const std::optional<T>& value) {
  return value ? std::optional(written(*value)) : std::nullopt;
}

/// Whether an object must have all fields.
enum class Fields { any, all };

/// Reads the fields of one object. Errors name `operation` and the field.
class Reader {
 public:
  Reader(std::string_view operation, const Json& json, Fields needed = Fields::any)
      : operation_(operation), json_(json), needed_(needed) {}

  /// Sets `value` if the object has the field. Error: the object must have it, but does not.
  template <class T> void operator()(const std::string& name, T& value) {
    if (const Json* found = find(name)) read(*found, name, value);
  }
  /// The same for a whole number from `least` to `most`. Without these bounds it must be from -1 to 2^31 - 1.
  template <std::integral T> void operator()(const std::string& name, T& value, i64 least, i64 most) {
    if (const Json* found = find(name)) value = static_cast<T>(whole_number(*found, least, most, operation_, name));
  }
  /// The same for a list of whole numbers.
  template <std::integral T> void operator()(const std::string& name, std::vector<T>& value, i64 least, i64 most) {
    const Json* found = find(name);
    if (!found) return;
    check_list(*found, name);
    value.clear();
    for (const Json& element : *found)
      value.push_back(static_cast<T>(whole_number(element, least, most, operation_, name)));
  }
  /// Calls each(reader) for every object of a list. Errors give its number, counted from 1.
  template <class Each> void for_each(const std::string& name, const Each& each) {
    const Json* found = find(name);
    if (!found) return;
    check_list(*found, name);
    for (size_t i = 0; i < found->size(); ++i) {
      const std::string element = std::string(operation_) + ": " + name + " " + std::to_string(i + 1);
      check((*found)[i].is_object(), element, "is not a JSON object");
      Reader reader(element, (*found)[i], needed_);
      each(reader);
    }
  }
  /// Error: the object has a field that was not read.
  void check_all_known() const {
    for (const auto& [name, value] : json_.items()) {
      check(std::find(known_.begin(), known_.end(), name) != known_.end(), operation_, "there is no field \"", name,
            "\"");
    }
  }

 private:
  const Json* find(const std::string& name) {
    known_.push_back(name);
    const auto found = json_.find(name);
    check(found != json_.end() || needed_ == Fields::any, operation_, "has no field \"", name, "\"");
    return found == json_.end() ? nullptr : &*found;
  }
  void check_list(const Json& json, std::string_view name) const {
    check(json.is_array(), operation_, name, " must be a list, not ", Shown{json});
  }
  template <class T> void read(const Json& json, std::string_view name, std::vector<T>& value) const {
    check_list(json, name);
    value.clear();
    for (const Json& element : json) read(element, name, value.emplace_back());
  }
  void read(const Json& json, std::string_view name, bool& value) const {
    check(json.is_boolean(), operation_, name, " must be true or false, not ", Shown{json});
    value = json.get<bool>();
  }
  template <std::integral T> void read(const Json& json, std::string_view name, T& value) const {
    value = static_cast<T>(whole_number(json, -1, std::numeric_limits<i32>::max(), operation_, name));
  }
  void read(const Json& json, std::string_view name, double& value) const {
    check(json.is_number(), operation_, name, " must be a number, not ", Shown{json});
    value = json.get<double>();
  }
  void read(const Json& json, std::string_view name, std::string& value) const {
    check(json.is_string(), operation_, name, " must be text, not ", Shown{json});
    value = json.get<std::string>();
  }
  template <class T> void read(const Json& json, std::string_view name, std::optional<T>& value) const {
    value.reset();
    if (!json.is_null()) read(json, name, value.emplace());
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(const Json& json, std::string_view name, T& value) const {
    const auto all = names(value);
    const auto found = std::find(all.begin(), all.end(), json.is_string() ? json.get<std::string>() : "");
    check(found != all.end(), operation_, name, " cannot be ", Shown{json});
    value = static_cast<T>(found - all.begin());
  }

  std::string_view operation_;
  const Json& json_;
  Fields needed_;
  std::vector<std::string> known_;
};

/// Every field as JSON text.
template <class Config> std::string text_of(Config config) {
  ObjectText json;
  for_each_field(config, [&](const Field& field, const auto& value) { json.add(field.name, written(value)); });
  return json.text();
}

/// The valid configuration that `text` describes; absent fields keep their defaults.
template <class Config> Config config_of(const std::string& text, std::string_view operation) {
  const Json json = parse_json_object(text, operation);
  Config config;
  Reader reader(operation, json);
  for_each_field(config, [&](const Field& field, auto& value) { reader(field.name, value); });
  reader.check_all_known();
  config.validate();
  return config;
}

/// Whether `text` has fields, and all of them are a Config's. Error: it is not a JSON object.
template <class Config> bool describes(const std::string& text) {
  const Json json = parse_json_object(text, "config");
  std::vector<std::string> known;
  Config config;
  for_each_field(config, [&](const Field& field, const auto&) { known.emplace_back(field.name); });
  return !json.empty() && std::all_of(json.items().begin(), json.items().end(), [&](const auto& item) {
    return std::find(known.begin(), known.end(), item.key()) != known.end();
  });
}

}  // namespace orrery::nn::config_json
