// Chapter 9. Writing --help: names on the left, descriptions on the right, wrapped into lines.
#include "apps/program/help.h"

#include <CLI/CLI.hpp>

#include <sstream>

#include "apps/program/columns.h"

namespace orrery {
namespace {

constexpr size_t left_width = 30;

// A row of the help. If `left` is too long, it gets a line of its own.
std::string help_row(const std::string& left, const std::string& right) {
  std::string described = wrapped(right, left_width, help_width, left_width);
  const std::string begin = "  " + left;
  if (described.empty()) return begin + '\n';
  if (begin.size() + 2 > left_width) return begin + '\n' + described;
  return described.replace(0, left_width, fitted(begin, left_width));
}

class HelpFormatter final : public CLI::Formatter {
 private:
  // CLI11 puts two empty lines between groups.
  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override {
    return CLI::detail::find_and_replace(CLI::Formatter::make_help(command, name, mode), "\n\n\n", "\n\n");
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return help_row(make_option_name(option, is_positional) + make_option_opts(option), option->get_description());
  }

  // "--norm-first, --no-norm-first"; CLI11 marks the second with {false}.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"{false}", ""}, {",", ", "}})
      name = CLI::detail::find_and_replace(name, from, to);
    return name;
  }

  // " NUMBER=1"
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = option->get_type_name().empty() ? "" : " " + option->get_type_name();
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    if (several && (option->get_positional() || option->get_allow_extra_args())) text += " ...";
    return text + (option->get_required() ? " REQUIRED" : "");
  }

  std::string make_description(const CLI::App* command) const override {
    return wrapped(command->get_description(), 0, help_width, 0);
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return help_row(command->get_name(), command->get_description());
  }

  std::string make_footer(const CLI::App* command) const override {
    std::istringstream footer(command->get_footer());
    std::string text;
    for (std::string line; std::getline(footer, line);)
      text += line.starts_with(' ') ? line + '\n' : wrapped(line, 0, help_width, 0);  // examples can be copied
    return text;
  }
};

// The values between which a choice lies: `add_choice` gives them as the name of its rule.
std::vector<std::string> choices_of(CLI::Option& option) {
  std::vector<std::string> choices;
  try {
    std::istringstream names(option.get_validator()->get_name());
    for (std::string name; names >> name;) choices.push_back(name.substr(0, name.find(',')));
  } catch (const CLI::OptionNotFound&) {}  // it has no rule
  return choices;
}

OptionHelp option_help(CLI::Option& option) {
  OptionHelp help{.description = option.get_description(),
                  .takes_value = option.get_expected_max() != 0,
                  .default_value = option.get_default_str(),
                  .choices = choices_of(option)};
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  return help;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

CommandHelp command_help(CLI::App& command) {
  CommandHelp help{.name = command.get_name(), .description = command.get_description()};
  for (CLI::Option* option : command.get_options()) help.options.push_back(option_help(*option));
  for (CLI::App* sub_command : command.get_subcommands(nullptr)) help.commands.push_back(command_help(*sub_command));
  return help;
}

}  // namespace orrery
