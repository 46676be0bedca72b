// Chapter 9. The options of a command as a file: JSON to options, and options to JSON.
#include "apps/program/option_file.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"

namespace orrery {
namespace {

const std::string config_name = "config";

// "d-model" for --d-model, "norm-first" for --norm-first and --no-norm-first, "FILE" for an argument.
std::string name_in_file(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name(true) : option.get_lnames().front();
}

bool is_config(const CLI::Option& option) { return name_in_file(option) == config_name; }
bool is_switch(const CLI::Option& option) { return option.get_expected_max() == 0; }
bool is_list(const CLI::Option& option) { return option.get_expected_max() == CLI::detail::expected_max_vector_size; }
bool is_number(const CLI::Option& option) { return option.get_type_name() == number_kind; }

// A value as it would be typed; a switch is "true" or "false".
std::string typed(const Json& value, const CLI::Option& option, const std::string& operation) {
  const auto check_type = [&](bool right, std::string_view type) {
    check(right, operation, name_in_file(option), " must be ", type, ", not ", Shown{value});
  };
  if (is_switch(option))
    check_type(value.is_boolean(), "true or false");
  else if (is_number(option))
    check_type(value.is_number(), "a number");
  else
    check_type(value.is_string(), "text");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The values as they would be typed: of a list, any number.
std::vector<std::string> all_typed(const Json& value, const CLI::Option& option, const std::string& operation) {
  if (!is_list(option) || !value.is_array()) return {typed(value, option, operation)};
  std::vector<std::string> result;
  for (const Json& element : value) result.push_back(typed(element, option, operation));
  return result;
}

// The text of a JSON file, or the options that a saved model has.
std::string options_text(const std::string& path, const std::string& operation, bool is_model) {
  if (is_model) {
    const Metadata metadata = read_safetensors_metadata(path);
    const auto found = metadata.find(options_key);
    check(found != metadata.end(), operation, "the file has no options of a training");
    return found->second;
  }
  const InputFile file(path);
  check(file.size() <= most_json_bytes, operation, "has ", file.size(), " bytes, too many for options");
  const std::string text = file.text();
  if (text.size() > 8 && text[0] != '{' && text[8] == '{') read_safetensors_metadata(path);  // says what is damaged
  return text;
}

void check_known(const Json& values, const std::vector<CLI::Option*>& options, const std::string& operation,
                 bool is_model) {
  for (const auto& [name, value] : values.items()) {
    const bool known = std::any_of(options.begin(), options.end(), [&name = name](const CLI::Option* option) {
      return name_in_file(*option) == name && !is_config(*option);
    });
    check(known, operation, "there is no option \"", name, '"',
          is_model ? "; another command or another version saved this model" : "");
  }
}

// Runs the options in the order in which they were added: those that were typed with their values, others with those of
// the file.
void take_options(const std::vector<CLI::Option*>& options, const Json& values, const std::string& operation) {
  for (CLI::Option* option : options) {
    if (is_config(*option)) continue;
    if (option->count() > 0) {
      option->run_callback();
      continue;
    }
    const auto value = values.find(name_in_file(*option));
    if (value == values.end()) continue;
    for (const std::string& text : all_typed(*value, *option, operation)) option->add_result(text);
    try {
      option->run_callback();
    } catch (const CLI::ParseError& error) { fail(operation, error.what()); }
  }
}

// Several files as a list; one as a text.
Json files_of(const std::string& text) {
  std::vector<std::string> files;
  std::istringstream all(text);
  for (std::string file; std::getline(all, file, between_files);) files.push_back(file);
  return files.size() == 1 ? Json(files[0]) : Json(files);
}

// A default, which is a whole number or not.
Json number_of(const std::string& text) {
  if (text.find_first_of(".en") == text.npos) return std::stoll(text);
  return std::stod(text);
}

}  // namespace

void add_config(CLI::App& command, std::string& path, const std::vector<CLI::Option*>& for_models) {
  const auto take = [&command, &path, &for_models](const std::string& given) {
    path = model_in(given);
    const std::string operation = "read " + path;
    const bool is_model = holds_model(path);
    Json values = parse_json_object(options_text(path, operation, is_model), operation);
    const std::vector<CLI::Option*> options = is_model ? for_models : options_of(command);
    check_known(values, options, operation, is_model);
    for (const CLI::Option* option : options) {
      const auto others = option->get_excludes();  // --epochs wins over the file's --steps
      if (std::any_of(others.begin(), others.end(), [](const CLI::Option* other) { return other->count() > 0; }))
        values.erase(name_in_file(*option));
    }
    take_options(options, values, operation);
  };
  command
      .add_option_function<std::string>(
          "--" + config_name, take,
          "Take options from a file of JSON, from a saved model, or from the folder of one. Options on the command "
          "line win, but --preset sets only what the file leaves open")
      ->type_name("FILE");
}

void take_values(const std::vector<CLI::Option*>& options, const std::string& values, const std::string& operation,
                 const std::function<void()>& check) {
  const Json json = parse_json_object(values, operation);
  check_known(json, options, operation, true);
  try {
    take_options(options, json, operation);
    check();
  } catch (const CLI::ParseError& error) { fail(operation, error.what()); }
}

Json values_of(const std::vector<CLI::Option*>& options) {
  Json values = Json::object();
  for (CLI::Option* option : options) {
    const std::string text = option->capture_default_str()->get_default_str();
    if (is_config(*option) || (text.empty() && !is_switch(*option))) continue;
    if (is_switch(*option))
      values[name_in_file(*option)] = text == "true";
    else if (is_number(*option))
      values[name_in_file(*option)] = number_of(text);
    else if (is_list(*option))
      values[name_in_file(*option)] = files_of(text);
    else
      values[name_in_file(*option)] = text;
  }
  return values;
}

}  // namespace orrery
