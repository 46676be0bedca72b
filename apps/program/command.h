// Chapter 9. What the sub-commands of `orrery` share: how they are added, and how they end.
//
// A sub-command is one file with one function `add_NAME(program, exit_code)`. It adds its options, and a callback that
// runs after the whole command line was found valid:
//   auto options = std::make_shared<Options>();
//   CLI::App& command = add_command(program, "name", "What it does", "Example:\n  orrery name --seed 3");
//   add_seed(command, options->seed);
//   when_run(command, exit_code, [options] { return run(*options); });
// Options are in options.h. Results go to stdout, progress to stderr. --help has options in groups, with their
// defaults. It does not list which options exclude each other: an option that starts another kind of run excludes
// nearly all others. The error for a wrong command line names both.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace orrery {

/// A function that adds a sub-command to `program`; when this runs, it sets `exit_code`. apps/main.cpp and
/// apps/tasks/tasks.cpp list them all.
using AddCommand = void(CLI::App& program, int& exit_code);

/// Parses the command line, runs the sub-command and returns the exit code. Every exception becomes a message on
/// stderr: one line, followed by the details of a failure, if it has any.
int run_program(int argc, char** argv, const std::vector<AddCommand*>& commands);

/// Whether standard output is a pipe that nobody reads any more, as in `orrery ... | head`.
bool output_is_closed();

/// A new sub-command of `program`; its help ends with `footer`.
CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& footer);
/// Sets the function that the sub-command runs; it returns the exit code.
void when_run(CLI::App& command, int& exit_code, const std::function<int()>& run);

/// Giving `command` without one of its sub-commands is wrong usage.
void needs_sub_command(CLI::App& command);

/// `failed` comes with a line on stderr, or with results that say what is wrong; `interrupted` is what shells report
/// for Ctrl-C.
enum ExitCode : int { done = 0, failed = 1, wrong_usage = 2, interrupted = 130 };

/// How many characters must be inserted, removed or replaced to turn `a` into `b` (Levenshtein 1966).
size_t edit_distance(std::string_view a, std::string_view b);
/// The first of `names` with the smallest distance to `typed`; "" if more than a third of `typed` would have to change.
std::string nearest(const std::string& typed, const std::vector<std::string>& names);

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
