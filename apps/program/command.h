// Chapter 9. What the sub-commands of `orrery` share: how they are added, and how they end.
//
// A sub-command is one file with one function `add_NAME(program, exit_code)`. It adds its options, and a callback that
// runs after the whole command line was found valid:
//   auto options = std::make_shared<Options>();
//   CLI::App& command = add_command(program, "name", "What it does", "Example:\n  orrery name --seed 3");
//   add_seed(command, options->seed);
//   when_run(command, exit_code, [options] { return run(*options); });
// Options are in options.h. Results go to stdout, progress to stderr.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/program/exit_code.h"

namespace CLI {
class App;
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

}  // namespace orrery
