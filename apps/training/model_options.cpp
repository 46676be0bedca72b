// Chapter 9. Options for the fields of a model's configuration.
#include "apps/training/model_options.h"

#include <algorithm>

namespace orrery {
namespace {

std::string option_of(const nn::Field& field) {
  std::string name = field.name;
  constexpr std::string_view counted = "num_";
  if (name.starts_with(counted)) name.erase(0, counted.size());
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

CLI::Option* add_field(CLI::App& command, const nn::Field& field, i64& value) {
  const i64 least = field.rule == nn::Rule::positive ? 1 : 0;
  return add_whole_number(command, "--" + option_of(field), value, least, field.most_offered, field.help);
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, double& value) {
  const double most = field.rule == nn::Rule::probability ? 0.99 : static_cast<double>(field.most_offered);
  return add_number(command, "--" + option_of(field), value, 0, most, field.help);
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, bool& value) {
  return add_switch(command, option_of(field), value, field.help);
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, std::optional<double>& value) {
  check(value.has_value(), "options", field.name, " has no value yet");
  return add_field(command, field, *value);
}

}  // namespace orrery
