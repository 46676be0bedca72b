// Chapter 9. Completion: what can follow the words of a command line, for the shells' Tab key.
//
//   $ orrery complete -- toy --task re
//   reverse
// The shells' scripts, orrery.bash, orrery.zsh and orrery.fish in this folder, ask the program each time, so that they
// say what its help says. Where nothing is printed, a shell offers files.
#pragma once

#include <string>
#include <vector>

#include "apps/program/command.h"

namespace orrery {

/// What a word can become.
struct Completion {
  std::string word, description;
};

/// What the last of `words` can become. They follow the program's name; the last is the one at the cursor, "" if it has
/// not been begun. A word "=" stands between an option and its value, since bash takes --task=copy for three words.
std::vector<Completion> completions(const CommandHelp& program, const std::vector<std::string>& words);

}  // namespace orrery
