// Chapter 9. Completion: walks the words of a command line down to the command or option that the last belongs to.
#include "apps/install/complete.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/program/options.h"

namespace orrery {
namespace {

const CommandHelp* named_command(const CommandHelp& command, const std::string& name) {
  const auto named = [&](const CommandHelp& one) { return one.name == name; };
  const auto found = std::find_if(command.commands.begin(), command.commands.end(), named);
  return found == command.commands.end() ? nullptr : &*found;
}

// The option of this name that takes a value.
const OptionHelp* named_option(const CommandHelp& command, const std::string& name) {
  for (const OptionHelp& option : command.options)
    if (option.takes_value && std::find(option.names.begin(), option.names.end(), name) != option.names.end())
      return &option;
  return nullptr;
}

// The values of an option, each after `before`: "" or "--task=".
std::vector<Completion> possible_values(const OptionHelp& option, const std::string& before) {
  std::vector<Completion> all;
  for (const std::string& choice : option.choices)
    all.push_back({before + choice, choice == option.default_value ? "the default" : ""});
  if (all.empty() && !option.default_value.empty()) all.push_back({before + option.default_value, "the default"});
  return all;
}

std::vector<Completion> all_option_names(const CommandHelp& command) {
  std::vector<Completion> all;
  for (const OptionHelp& option : command.options)
    for (const std::string& name : option.names) all.push_back({name, option.description});
  return all;
}

// What may stand where no option has been begun: sub-commands, or the values of an argument. Nearly all other arguments
// are names of files, which the shell completes by itself, so for them there is nothing to say.
std::vector<Completion> possible_arguments(const CommandHelp& command) {
  std::vector<Completion> all;
  for (const CommandHelp& one : command.commands) all.push_back({one.name, one.description});
  bool takes_argument = !all.empty();
  for (const OptionHelp& option : command.options) {
    if (!option.names.empty()) continue;
    takes_argument = true;
    for (const Completion& value : possible_values(option, "")) all.push_back(value);
  }
  return takes_argument ? all : all_option_names(command);
}

// Everything that may stand in the place of `last`, which follows `command` or, if there is one, `option`.
std::vector<Completion> possible_words(const CommandHelp& command, const OptionHelp* option, const std::string& last) {
  if (option != nullptr) return possible_values(*option, "");
  const size_t equals = last.find('=');
  if (equals != last.npos) {
    const OptionHelp* named = named_option(command, last.substr(0, equals));
    return named == nullptr ? std::vector<Completion>{} : possible_values(*named, last.substr(0, equals + 1));
  }
  return last.starts_with("-") ? all_option_names(command) : possible_arguments(command);
}

int print_completions(const CommandHelp& program, const std::vector<std::string>& words) {
  for (const Completion& one : completions(program, words)) std::cout << one.word << '\t' << one.description << '\n';
  return done;
}

}  // namespace

std::vector<Completion> completions(const CommandHelp& program, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const CommandHelp* command = &program;
  const OptionHelp* option = nullptr;  // the one whose value comes next
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "=") continue;  // from bash, which takes --task=copy for three words
    const bool is_value = option != nullptr;
    option = is_value ? nullptr : named_option(*command, words[i]);
    const CommandHelp* named = is_value ? nullptr : named_command(*command, words[i]);
    if (named != nullptr) command = named;
  }
  const std::string last = words.back() == "=" && option != nullptr ? "" : words.back();
  std::vector<Completion> found = possible_words(*command, option, last);
  std::erase_if(found, [&](const Completion& one) { return !one.word.starts_with(last); });
  return found;
}

void add_complete(CLI::App& program, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App& command =
      add_command(program, "complete", "Say what can follow the words of a command line, for the Tab key of shells",
                  "One possibility a line, and after a tab what it is; nothing where any file is possible.\n"
                  "Example:\n  orrery complete -- toy --task re");
  add_arguments(command, "WORD", *words, "The words after the program's name; the last is completed");
  when_run(command, exit_code, [&program, words] { return print_completions(command_help(program), *words); });
}

}  // namespace orrery
