// Chapter 9. Options, on CLI11.
#include "apps/program/options.h"

#include <fnmatch.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "apps/program/terminal.h"
#include "core/files/shards.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"
#include "core/products/precision.h"

namespace orrery {
namespace {

// Sets `value` to the number in `text`, which must have no other characters. A whole number must be written as
// std::to_string writes it: not "007".
bool parse(const std::string& text, i64& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && std::to_string(value) == text;
}
bool parse(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

// The shortest text from which `parse` makes the same number.
template <class T> std::string exact_text(T value) {
  char text[32];
  return std::string(text, std::to_chars(text, std::end(text), value).ptr);
}

template <class T>
CLI::Option* add_checked(CLI::App& command, const std::string& name, T& value, T low, T high, const std::string& kind,
                         const std::string& description) {
  std::ostringstream rule;
  rule.precision(10);  // 1000000, not 1e+06
  rule << " is not a " << kind << " from " << low << " to " << high;
  const auto problem = [low, high, rule = rule.str()](std::string& text) {
    T number{};
    return parse(text, number) && low <= number && number <= high ? "" : "'" + text + "'" + rule;
  };
  CLI::Option* option = command.add_option(name, value, description);
  option->check(CLI::Validator(problem, ""))->type_name(std::string(number_kind));
  // For `values_of`; the help shows six digits.
  option->default_function([&value, low, high] { return low <= value && value <= high ? exact_text(value) : ""; });
  return option;
}

// The rule of an option whose value is a text: an unset variable of the shell would leave it empty.
CLI::Validator not_empty() {
  const auto problem = [](std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); };
  return CLI::Validator(problem, "");
}

// The rule of a text: an option of the command is not meant as the value of the one before it ("--prompt --load x").
CLI::Validator no_option(CLI::App& command) {
  const auto problem = [&command](std::string& text) {
    const bool named = text.starts_with('-') && command.get_option_no_throw(text) != nullptr;
    return std::string(named ? "needs a value, not the option " + text : "");
  };
  return CLI::Validator(problem, "");
}

// The rule of a file's name: a user who writes "-" means standard input or output, and who writes "--save --save" has
// left out the name.
CLI::Validator file_name() {
  const auto problem = [](std::string& text) {
    const std::string rule = "must not begin with '-', as options do; write ./" + text + " for a file of that name";
    return text.starts_with('-') ? rule : "";
  };
  return CLI::Validator(problem, "");
}

// The rule of an option that has these values; its name lists them, for `command_help`.
CLI::Validator one_of(const std::vector<std::string>& allowed) {
  const auto problem = [allowed](std::string& text) {
    const bool known = std::find(allowed.begin(), allowed.end(), text) != allowed.end();
    return known ? "" : "'" + text + "' is not one of: " + listed(allowed);
  };
  return CLI::Validator(problem, "").name(listed(allowed));
}

}  // namespace

void begin_group(CLI::App& command, const std::string& title) { command.option_defaults()->group(title); }

CLI::Option* add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  return command.add_flag(name, value, description)->disable_flag_override()->default_function([&value] {
    return value ? "true" : "false";
  });
}

CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  const std::string yes = "--" + name, no = "--no-" + name;
  const auto take = [&value, yes, no](i64 balance) {  // how often --NAME is given, minus how often --no-NAME
    if (balance == 0) usage_error(yes, "cannot be given together with " + no);
    value = balance > 0;
  };
  return command.add_flag_function(yes + ",!" + no, take, description)
      ->disable_flag_override()
      ->default_function([&value] { return value ? "true" : "false"; });
}

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const std::string& kind,
                      const std::string& description) {
  return command.add_option(name, value, description)
      ->check(not_empty())
      ->check(no_option(command))
      ->type_name(kind)
      ->default_str("");
}

CLI::Option* add_file(CLI::App& command, const std::string& name, std::string& value, const std::string& description,
                      const std::string& kind) {
  const bool is_option = name.starts_with('-');  // an argument's own name says what it is
  return add_text(command, name, value, is_option ? kind : "", description)->check(file_name());
}

CLI::Option* add_output_file(CLI::App& command, const std::string& name, std::string& value,
                             const std::string& description) {
  return add_file(command, name, value, description + "; an earlier file is replaced, but never a model");
}

std::string model_in(const std::string& path) {
  std::error_code absent;
  const bool is_folder = path.ends_with('/') || std::filesystem::is_directory(path, absent);
  return is_folder ? (std::filesystem::path(path) / "model.safetensors").string() : path;
}

CLI::Option* take_folders(CLI::Option* model) {
  return change_text(model, [](const std::string& path) {
    const std::string found = model_file(path);  // perhaps an index of shards, which no training of ours writes
    return found == path ? model_in(path) : found;
  });
}

CLI::Option* change_text(CLI::Option* option, const std::function<std::string(const std::string&)>& change) {
  return option->transform(change, "", "changed");
}

CLI::Option* add_arguments(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                           const std::string& description) {
  return command.add_option(name, values, description)->type_name("")->default_str("");
}

CLI::Option* add_files(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                       const std::string& description) {
  const auto all = [&values] {
    std::string text;
    for (const std::string& value : values) text += (text.empty() ? "" : std::string(1, between_files)) + value;
    return text;
  };
  return add_arguments(command, name, values, description)
      ->check(not_empty())
      ->check(file_name())
      ->default_function(all);
}

CLI::Option* add_repeated_file(CLI::App& command, const std::string& name, std::vector<std::string>& values,
                               const std::string& description) {
  return add_files(command, name, values, description)->type_name("FILE")->allow_extra_args(false);
}

CLI::Option* add_whole_number(CLI::App& command, const std::string& name, i64& value, i64 low, i64 high,
                              const std::string& description) {
  return add_checked<i64>(command, name, value, low, high, "whole number", description);
}

CLI::Option* add_number(CLI::App& command, const std::string& name, double& value, double low, double high,
                        const std::string& description) {
  return add_checked<double>(command, name, value, low, high, "number", description);
}

CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value,
                        const std::vector<std::string>& allowed, const std::string& description,
                        const std::function<void(const std::string&)>& when_chosen) {
  CLI::Option* option = command.add_option(name, value, description + ": " + listed(allowed));
  option->check(one_of(allowed))->type_name("NAME");
  return when_chosen ? option->each(when_chosen) : option;
}

CLI::Option* add_numbered_choice(CLI::App& command, const std::string& name, const std::vector<std::string>& allowed,
                                 const std::string& description, const std::function<size_t()>& get,
                                 const std::function<void(size_t)>& set) {
  const auto take = [allowed, set](const std::string& text) {
    set(static_cast<size_t>(std::find(allowed.begin(), allowed.end(), text) - allowed.begin()));
  };
  return command.add_option_function<std::string>(name, take, description + ": " + listed(allowed))
      ->check(one_of(allowed))
      ->type_name("NAME")
      ->default_function([allowed, get] { return allowed.at(get()); })
      ->capture_default_str();
}

CLI::Option* add_seed(CLI::App& command, i64& seed) {
  return add_whole_number(command, "--seed", seed, 0, std::numeric_limits<i64>::max(), "Seed of all random numbers");
}

CLI::Option* add_threads(CLI::App& command, i64& threads) {
  constexpr i64 most = 256;
  threads = std::min<i64>(orrery::threads(), most);
  CLI::Option* option = add_whole_number(command, "--threads", threads, 1, most,
                                         "Threads, by default one per core; the results do not depend on them");
  show_default(option, "");  // the help, which is also the manual page, is that of every machine
  return option;
}

std::vector<CLI::Option*> add_products(CLI::App& command, ProductOptions& products) {
  products = {uses_blas(), uses_bf16()};
  const auto add = [&command](const char* name, const char* (*name_of)(bool), bool& value, const char* what) {
    return add_numbered_choice(
        command, name, {name_of(false), name_of(true)}, what, [&value] { return size_t{value}; },
        [&value](size_t chosen) { value = chosen == 1; });
  };
  return {
      add("--products", products_name, products.by_blas,
          "Who computes matrix products: the library, or OpenBLAS, which changes the last bits of the results"),
      add("--precision", precision_name, products.bf16,
          "Of the two factors of each matrix product, also in attention: f32 as they are, or rounded to bf16, which "
          "is fast on CPUs that multiply bf16. Sums and all other numbers stay f32")};
}

void set_products(const ProductOptions& products) {
  if (products.by_blas && products.bf16)
    usage_error("--precision", "bf16 is for products by the library, not for --products blas");
  use_products(products);
}

void show_default(CLI::Option* option, const std::string& text) { option->default_str(text); }

void require(CLI::Option* option) { option->required(); }

void exclude(CLI::Option* option, const std::vector<CLI::Option*>& others) {
  for (CLI::Option* other : others) option->excludes(other);
}

std::vector<CLI::Option*> options_of(CLI::App& command) {
  std::vector<CLI::Option*> result = command.get_options();
  std::erase(result, command.get_help_ptr());
  return result;
}

std::vector<CLI::Option*> added_by(CLI::App& command, const std::function<void()>& add) {
  const auto before = static_cast<std::ptrdiff_t>(options_of(command).size());
  add();
  std::vector<CLI::Option*> all = options_of(command);
  all.erase(all.begin(), all.begin() + before);
  return all;
}

bool is_given(const CLI::Option* option) { return option->count() > 0; }

std::string typed_name(const CLI::Option* option) { return option->get_name(); }

void usage_error(const std::string& subject, const std::string& rule) { throw CLI::ValidationError(subject, rule); }

bool matches_any(const std::vector<std::string>& patterns, const std::string& text) {
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
         });
}

std::string listed(const std::vector<std::string>& names) { return joined(names, ", "); }

std::string some_of(const std::vector<std::string>& names, size_t most) {
  if (names.size() <= most) return listed(names);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(most);
  return listed({names.begin(), end}) + " and " + std::to_string(names.size() - most) + " more";
}

}  // namespace orrery
