// Chapter 9. Runs a sub-command and turns its result into an exit code and, after a failure, a message on stderr.
//
// Serves: apps/toy/toy.cpp
#include "apps/program/command.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <new>
#include <span>
#include <sstream>
#include <string_view>

#include "apps/program/help.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"

namespace orrery {
namespace {

// The names of a command's sub-commands, as a list.
std::string names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* known : command.get_subcommands(nullptr)) names.push_back(known->get_name());
  return listed(names);
}

// Prints the message and returns the exit code. Wrong usage is one line; other failures may add lines with details.
int complain(std::string message, int exit_code) {
  if (exit_code == wrong_usage) {
    for (size_t at = 0; (at = message.find('\n', at)) != std::string::npos;) {
      const size_t end = message.find_first_not_of(" \n", at);
      message.replace(at, end == std::string::npos ? end : end - at, end == std::string::npos ? "" : "; ");
    }
  }
  std::cerr << "orrery: " << harmless_lines(message) << std::endl;
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

// CLI11 says that an argument "was not expected"; we also say where to look.
std::string unexpected(const CLI::App& program) {
  const std::vector<std::string> remaining = program.remaining(true);
  const std::string argument = remaining.empty() ? "" : remaining.front();
  const CLI::App& command = chosen(program);
  const std::string of = chosen_prefix(program);
  const std::string names = names_of(command);
  const std::string see = "'; see " + full_name(command) + " --help";
  if (argument.starts_with("-")) return of + "no option '" + argument + see;
  if (names.empty()) return of + "unexpected argument '" + argument + see;
  return of + "no sub-command '" + argument + "'; there are: " + names;
}

// CLI11 says that something "is required"; we also say of which command, and what it is.
std::string missing(const CLI::App& program, const CLI::RequiredError& error) {
  std::string message = chosen_prefix(program) + error.what();
  for (const CLI::Option* option : chosen(program).get_options())
    if (option->get_required() && option->count() == 0) return message + ": " + option->get_description();
  return message;
}

// What CLI11 says of options without their value, with one too many, or given twice: in our form, the option and what
// is wrong. Anything else stays as it is. Not by std::regex, which overflows the stack on a long value.
std::string in_our_words(const std::string& message) {
  constexpr std::string_view twice = ": At Most 1 required but received ", no_value = ": 1 required ", end = " missing",
                             valued_flag = " was given a disallowed flag override";
  if (const size_t at = message.find(twice); at != message.npos)
    return message.substr(0, at) + ": may be given only once";
  if (const size_t at = message.find(no_value); at != message.npos && message.ends_with(end)) {
    const size_t kind = at + no_value.size();
    return message.substr(0, at) + ": needs a value, " + message.substr(kind, message.size() - end.size() - kind);
  }
  if (message.ends_with(valued_flag))
    return "--" + message.substr(0, message.size() - valued_flag.size()) + ": takes no value";
  return message;
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
  } catch (const CLI::RequiredError& error) {
    return complain(missing(program, error), wrong_usage);
  } catch (const CLI::ArgumentMismatch& error) {
    return complain(in_our_words(error.what()), wrong_usage);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help and --version
    return complain(error.what(), wrong_usage);
  } catch (const std::bad_alloc&) { return complain("out of memory", failed); } catch (const std::exception& error) {
    return complain(error.what(), failed);
  } catch (...) { return complain("an unknown error", failed); }
}

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
template <class T>
std::string exact_text(T value) {
  char text[32];
  return std::string(text, std::to_chars(text, std::end(text), value).ptr);
}

template <class T>
CLI::Option* add_checked(CLI::App& command, const std::string& name, T& value, T low, T high, const std::string& kind,
                         const std::string& description) {
  std::ostringstream rule;
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

// The rule of an option that has these values; its name lists them, for `command_help`.
CLI::Validator one_of(const std::vector<std::string>& allowed) {
  const auto problem = [allowed](std::string& text) {
    const bool known = std::find(allowed.begin(), allowed.end(), text) != allowed.end();
    return known ? "" : "'" + text + "' is not one of: " + listed(allowed);
  };
  return CLI::Validator(problem, "").name(listed(allowed));
}

// A stream that the caller closed (>&-) must not become the number of a file that is opened later: results would be
// written into it. It is opened the other way round, so that reading and writing still fail.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

bool output_is_closed() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int run_program(int argc, char** argv, const std::vector<AddCommand>& commands) {
  occupy_closed_streams();
  // Writing to a closed pipe, or beyond the size limit of files, must fail instead of ending the program.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App program("Orrery: the Transformer of \"Attention Is All You Need\", from scratch.", "orrery");
  program.set_version_flag("--version", "orrery " ORRERY_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.option_defaults()->always_capture_default();
  program.formatter(help_formatter());
  program.footer(
      "Example:\n  orrery gradcheck softmax\nEach sub-command has its own --help.\n"
      "Exit code 0: done; 1: failed; 2: wrong usage;\n130: stopped by Ctrl-C, SIGTERM, SIGHUP or --time-limit.\n"
      "The book: apps/book/README.md. Its exercises: apps/run exercise.");
  int exit_code = done;
  for (const AddCommand add : commands) add(program, exit_code);
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

void begin_group(CLI::App& command, const std::string& title) { command.option_defaults()->group(title); }

CLI::Option* add_flag(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  return command.add_flag(name, value, description)->disable_flag_override()->default_function([&value] {
    return value ? "true" : "false";
  });
}

CLI::Option* add_switch(CLI::App& command, const std::string& name, bool& value, const std::string& description) {
  const std::string yes = "--" + name, no = "--no-" + name;
  const auto take = [&value, yes, no](i64 balance) {  // how often --NAME is given, minus how often --no-NAME
    if (balance == 0) usage_error(yes, "and " + no + " exclude one another");
    value = balance > 0;
  };
  return command.add_flag_function(yes + ",!" + no, take, description)
      ->disable_flag_override()
      ->default_function([&value] { return value ? "true" : "false"; });
}

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value, const std::string& kind,
                      const std::string& description) {
  return command.add_option(name, value, description)->check(not_empty())->type_name(kind)->default_str("");
}

CLI::Option* add_any_text(CLI::App& command, const std::string& name, std::string& value,
                          const std::string& description) {
  return command.add_option(name, value, description)->type_name("TEXT")->default_str("");
}

CLI::Option* add_file(CLI::App& command, const std::string& name, std::string& value, const std::string& description) {
  return add_text(command, name, value, "FILE", description);
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

CLI::Option* take_folders(CLI::Option* model) { return change_text(model, model_in); }

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
  return add_arguments(command, name, values, description)->check(not_empty())->default_function(all);
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
                                         "Threads, by default one a core; the results do not depend on them");
  show_default(option, "");  // the help, which is also the manual page, is that of every machine
  return option;
}

CLI::Option* add_tiles(CLI::App& command, i64& tiles) {
  tiles = least_tiles();
  return add_whole_number(command, "--tiles", tiles, 1, most_tiles,
                          "Parts of a large product, for as many cores; unlike --threads, part of a run's bits");
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

bool is_given(const CLI::Option* option) { return option->count() > 0; }

std::string typed_name(const CLI::Option* option) { return option->get_name(); }

void usage_error(const std::string& subject, const std::string& rule) { throw CLI::ValidationError(subject, rule); }

bool matches_any(const std::vector<std::string>& patterns, const std::string& text) {
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
         });
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::string shell_quoted(const std::string& argument) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("_@%+=:,./-", c) != nullptr; };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), is_plain)) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace orrery
