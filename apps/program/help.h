// Chapter 9. The format of --help: options in groups, with their defaults, in lines of at most 80 columns.
//
// The help does not list which options exclude each other: an option that starts another kind of run excludes nearly
// all others. The error for a wrong command line names both.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace orrery {

/// The largest width of a line of help.
inline constexpr size_t help_width = 80;

/// Writes the help of a command and its sub-commands.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// An option or an argument, as the help describes it.
struct OptionHelp {
  std::vector<std::string> names{};  ///< "--norm-first" and "--no-norm-first"; none for an argument
  std::string description;
  bool takes_value = false;
  std::string default_value{};         ///< "" if there is none
  std::vector<std::string> choices{};  ///< the values, where only these are allowed
};

/// A command, as its help describes it.
struct CommandHelp {
  std::string name, description;
  std::vector<OptionHelp> options{};
  std::vector<CommandHelp> commands{};
};

/// The help of a command and of its sub-commands, for what completes command lines.
CommandHelp command_help(CLI::App& command);

}  // namespace orrery
