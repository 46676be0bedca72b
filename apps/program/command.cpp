// Chapter 9. Runs a sub-command and turns its result into an exit code and, after a failure, a message on stderr; and
// writes the help of each: options in groups, in lines of at most 80 columns.
#include "apps/program/command.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>
#include <numeric>
#include <sstream>

#include "apps/program/options.h"
#include "apps/program/terminal.h"
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

size_t edit_distance(std::string_view a, std::string_view b) {
  // Wagner and Fischer (1974): distances[k] is that of the first i characters of `a` to the first k of `b`.
  std::vector<size_t> distances(b.size() + 1);
  std::iota(distances.begin(), distances.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = distances[0];  // of i - 1 characters to k - 1
    distances[0] = i;
    for (size_t k = 1; k <= b.size(); ++k) {
      const size_t replaced = diagonal + (a[i - 1] == b[k - 1] ? 0 : 1);
      diagonal = distances[k];
      distances[k] = std::min({replaced, distances[k] + 1, distances[k - 1] + 1});
    }
  }
  return distances[b.size()];
}

std::string nearest(const std::string& typed, const std::vector<std::string>& names) {
  std::string best;
  size_t least = typed.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(typed, name);
    if (distance >= least) continue;
    least = distance;
    best = name;
  }
  return best;
}

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
