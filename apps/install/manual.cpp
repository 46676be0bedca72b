// Chapter 9. Writing the manual page: one section for the program, and one for each command with its options.
//
// Serves: apps/toy/toy.cpp
#include "apps/install/manual.h"

#include <algorithm>
#include <iostream>
#include <sstream>

#include "apps/program/command.h"

namespace orrery {
namespace {

// Text that man(1) shows as it is: no hyphenation, no special characters, no request at the beginning of a line.
std::string roff(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    switch (c) {
      case '\\': shown += "\\e"; break;
      case '-': shown += "\\-"; break;
      default: shown += c;
    }
  }
  const bool looks_like_request = shown.starts_with('.') || shown.starts_with('\'');
  return (looks_like_request ? "\\&" : "") + shown;
}

// Lines of a footer; those that are indented are examples, which keep their form.
std::string footer_lines(const std::string& text) {
  std::istringstream in(text);
  std::string page;
  for (std::string line; std::getline(in, line);) {
    const bool example = line.starts_with(' ');
    page += example ? ".EX\n" + roff(line) + "\n.EE\n" : ".br\n" + roff(line) + "\n";
  }
  return page.empty() ? "" : ".PP\n" + page;
}

// Options in the order of their groups' first ones, as in the help.
std::string option_list(const CommandHelp& command) {
  std::string page;
  std::vector<std::string> groups;
  for (const OptionHelp& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  for (const std::string& group : groups) {
    page += ".PP\n" + roff(group) + ":\n";
    for (const OptionHelp& option : command.options)
      if (option.group == group) page += ".TP\n.B " + roff(option.row) + "\n" + roff(option.description) + "\n";
  }
  return page;
}

std::string synopsis(const CommandHelp& command) {
  std::string shown = command.commands.empty() ? "" : " COMMAND";
  shown += " [OPTION]...";
  for (const OptionHelp& option : command.options)
    if (option.names.empty()) shown += " [" + option.row + "]";
  return shown;
}

// The sections of the commands of `parent`, each followed by those of its own.
std::string command_sections(const CommandHelp& parent, const std::string& before) {
  std::string page;
  for (const CommandHelp& command : parent.commands) {
    const std::string name = before + " " + command.name;
    page += ".SS " + roff(name + synopsis(command)) + "\n" + roff(command.description) + "\n" + option_list(command) +
            footer_lines(command.footer) + command_sections(command, name);
  }
  return page;
}

}  // namespace

std::string manual_page(const CommandHelp& program, const std::string& version) {
  return ".TH ORRERY 1 \"\" \"" + program.name + " " + version + "\" \"User Commands\"\n.SH NAME\n" + program.name +
         " \\- " + roff(program.description) + "\n.SH SYNOPSIS\n" + roff(program.name + synopsis(program)) +
         "\n.SH OPTIONS\n" + option_list(program) + footer_lines(program.footer) + ".SH COMMANDS\n" +
         command_sections(program, program.name);
}

void add_manual(CLI::App& program, int& exit_code) {
  CLI::App& command = add_command(program, "manual", "Print the manual page, which is all of the help in one",
                                  "Example:\n  orrery manual | man -l -");
  when_run(command, exit_code, [&program] {
    std::cout << manual_page(command_help(program), ORRERY_VERSION);
    return done;
  });
}

}  // namespace orrery
