// Chapter 9. Options for the fields of a model's configuration, from what it says of them (nn/models/fields.h).
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "apps/program/options.h"
#include "nn/models/fields.h"

namespace orrery {

/// An option for a field: "--d-model" for d_model, "--heads" for num_heads, "--bias" and "--no-bias" for bias.
CLI::Option* add_field(CLI::App& command, const nn::Field& field, i64& value);
CLI::Option* add_field(CLI::App& command, const nn::Field& field, double& value);
CLI::Option* add_field(CLI::App& command, const nn::Field& field, bool& value);
/// The same for a field that has a value.
CLI::Option* add_field(CLI::App& command, const nn::Field& field, std::optional<double>& value);

/// Options for some fields of `config`, in this order. Error: it has no such field, or one without a help text.
template <class Config>
void add_fields(CLI::App& command, Config& config, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    bool is_added = false;
    for_each_field(config, [&](const nn::Field& field, auto& value) {
      if constexpr (requires { add_field(command, field, value); })
        if (field.name == name && *field.help) is_added = add_field(command, field, value) != nullptr;
    });
    check(is_added, "options", "no option can be made of ", name);
  }
}

}  // namespace orrery
