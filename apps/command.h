// Chapter 9. What the sub-commands of `orrery` share: how they are added, how they end, how their options are checked.
//
// A sub-command is one file with one function `add_NAME(program, exit_code)`. It adds its options, and a callback that
// runs once the whole command line has been found right:
//   auto options = std::make_shared<Options>();
//   CLI::App* command = program.add_subcommand("name", "What it does");
//   add_seed(*command, options->seed);
//   command->callback([options, &exit_code] { exit_code = run(*options); });
// Results go to stdout, progress to stderr.
// Read next: apps/command.cpp
#pragma once

#include <string>
#include <vector>

#include "apps/exit_code.h"
#include "core/dtype.h"

// CLI11's header takes seconds to compile: only files that add options include <CLI/CLI.hpp>.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace orrery {

/// Adds a sub-command to `program`; when it has run, its exit code stands in `exit_code`.
using AddCommand = void (*)(CLI::App& program, int& exit_code);
void add_gradcheck(CLI::App& program, int& exit_code);
void add_leakcheck(CLI::App& program, int& exit_code);
void add_toy(CLI::App& program, int& exit_code);

/// Parses the command line, runs the sub-command and returns the exit code. Whatever is thrown becomes a message on
/// stderr: one line, and below it the details of a failure that has some.
int run_program(int argc, char** argv, const std::vector<AddCommand>& commands);

/// An option whose value must be a whole number from `low` to `high`.
CLI::Option* add_whole_number(CLI::App& command, const std::string& name, i64& value, i64 low, i64 high,
                              const std::string& description);
/// An option whose value must be a finite number from `low` to `high`.
CLI::Option* add_number(CLI::App& command, const std::string& name, double& value, double low, double high,
                        const std::string& description);
/// An option whose value must be one of `allowed`.
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value,
                        const std::vector<std::string>& allowed, const std::string& description);
/// An option whose value must not be empty, as that of a shell's unset variable is; `kind`, such as "FILE", stands in
/// the help.
CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const std::string& kind,
                      const std::string& description);
/// `--seed`: from 0 to 2^63 - 1.
CLI::Option* add_seed(CLI::App& command, i64& seed);
/// `--threads`: from 1 to 256; sets `threads` to its default, what OpenMP offers. Pass the value to `set_threads`.
CLI::Option* add_threads(CLI::App& command, i64& threads);

/// Ends the command with exit code 2: `subject` is the option or argument, `rule` says what is allowed.
[[noreturn]] void usage_error(const std::string& subject, const std::string& rule);

}  // namespace orrery
