// Chapter 9. Runs a sub-command and turns its result into an exit code and, after a failure, a message on stderr.
#include "apps/program/command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include "apps/program/help.h"
#include "apps/program/nearest.h"
#include "apps/program/options.h"
#include "core/error.h"
#include "core/machine/vector_level.h"

namespace orrery {
namespace {

// The names of a command's sub-commands, as a list.
std::string names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* known : command.get_subcommands(nullptr)) names.push_back(known->get_name());
  return listed(names);
}

// "a\n  b\n" becomes "a; b".
std::string in_one_line(std::string message) {
  message.resize(message.find_last_not_of(" \n") + 1);
  for (size_t at = message.find('\n'); at != message.npos; at = message.find('\n', at))
    message.replace(at, message.find_first_not_of(" \n", at) - at, "; ");
  return message;
}

// Prints the message and returns the exit code. Wrong usage is one line; other failures may add lines with details.
int complain(const std::string& message, int exit_code) {
  std::cerr << "orrery: " << harmless_lines(exit_code == wrong_usage ? in_one_line(message) : message) << std::endl;
  return exit_code;
}

// The innermost sub-command that was named, or the program itself.
const CLI::App& chosen(const CLI::App& program) {
  const auto parsed = program.get_subcommands();
  return parsed.empty() ? program : chosen(*parsed.front());
}

// "orrery bench step"
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent ? full_name(*parent) + " " + command.get_name() : command.get_name();
}

// "bench step: ", or "" for the program itself.
std::string chosen_prefix(const CLI::App& program) {
  const CLI::App& command = chosen(program);
  return &command == &program ? "" : full_name(command).substr(program.get_name().size() + 1) + ": ";
}

// Where the options and arguments of the chosen command are explained.
std::string see(const CLI::App& program) { return "; see " + full_name(chosen(program)) + " --help"; }

// " (--steps?)", or those that end in the word, or "" if no option of the command has a name like it.
std::string meant(const std::string& argument, const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::string typed = argument.substr(0, argument.find('='));
  const std::string name = nearest(typed, names);
  std::erase_if(names, [&](const std::string& each) { return !each.ends_with(typed.substr(1)); });
  if (name.empty() && !names.empty() && typed.starts_with("--")) return " (" + listed(names) + "?)";
  return name.empty() ? "" : " (" + name + "?)";
}

// CLI11 says that an argument "was not expected"; we also say where to look.
std::string unexpected(const CLI::App& program) {
  const std::vector<std::string> remaining = program.remaining(true);
  const std::string argument = remaining.empty() ? "" : remaining.front();
  const CLI::App& command = chosen(program);
  const std::string of = chosen_prefix(program);
  const std::string names = names_of(command);
  if (argument.starts_with("-")) return of + "no option '" + argument + "'" + meant(argument, command) + see(program);
  if (names.empty()) return of + "unexpected argument '" + argument + "'" + see(program);
  return of + "no sub-command '" + argument + "'; there are: " + names;
}

// A full disk loses results, so it is a failure. A reader that has closed the pipe (orrery ... | head) is not, unless
// the command says so (translate decode).
int after_output(int exit_code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return exit_code;
  return output_is_closed() ? exit_code : complain("cannot write the results to standard output", failed);
}

int parse_and_run(CLI::App& program, int argc, char** argv, const int& exit_code) {
  try {
    program.parse(argc, argv);
    if (!program.get_subcommands().empty()) return exit_code;
    std::cerr << program.help();
    return wrong_usage;
  } catch (const CLI::ExtrasError&) {
    return complain(unexpected(program), wrong_usage);
  } catch (const CLI::ValidationError& error) {
    return complain(error.what(), wrong_usage);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help and --version
    return complain(error.what() + see(program), wrong_usage);
  } catch (const std::bad_alloc&) { return complain("out of memory", failed); } catch (const std::exception& error) {
    return complain(error.what(), failed);
  } catch (...) { return complain("an unknown error", failed); }
}

// A stream that the caller closed (>&-) must not become the number of a file that is opened later: results would be
// written into it. It is opened the other way round, so that reading and writing still fail.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// A native build names the CPU that it needs.
std::string version() {
  const std::string release = "orrery " ORRERY_VERSION;
  if (!ORRERY_IS_NATIVE) return release;
  const VectorLevel level = compiled_vector_level();
  const std::string vectors = "\nnative build, for CPUs with " + std::string(name_of(level));
  if (level == VectorLevel::avx512) return release + vectors + " (x86-64-v4)";
  return release + vectors + (level == VectorLevel::avx2 ? " (x86-64-v3)" : "");
}

}  // namespace

bool output_is_closed() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int run_program(int argc, char** argv, const std::vector<AddCommand*>& commands) {
  occupy_closed_streams();
  // Writing to a closed pipe, or beyond the size limit of files, must fail instead of ending the program.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App program("Orrery: the Transformer of \"Attention Is All You Need\", from scratch.", "orrery");
  program.set_version_flag("--version", version(), "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.option_defaults()->always_capture_default();
  program.formatter(help_formatter());
  program.footer(
      "Examples:\n  orrery toy\n  orrery gradcheck softmax\nEach sub-command has its own --help.\n"
      "Exit code 0: done; 1: failed; 2: wrong usage;\n130: stopped by Ctrl-C, SIGTERM, SIGHUP or --time-limit.\n"
      "The book: apps/book/README.md. Its exercises: apps/run exercise.");
  int exit_code = done;
  for (AddCommand* const add : commands) add(program, exit_code);
  return after_output(parse_and_run(program, argc, argv, exit_code));
}

CLI::App& add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& footer) {
  CLI::App& command = *program.add_subcommand(name, description);
  command.footer(footer);
  return command;
}

void when_run(CLI::App& command, int& exit_code, const std::function<int()>& run) {
  command.callback([run, &exit_code] { exit_code = run(); });
}

void needs_sub_command(CLI::App& command) {
  command.callback([&command] {
    if (command.get_subcommands().empty())
      usage_error(command.get_name(), "needs the name of a sub-command: " + names_of(command));
  });
}

}  // namespace orrery
