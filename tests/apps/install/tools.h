// Chapter 9. Tools that only some tests need: where one is missing, the test has nothing to show.
#pragma once

#include <cstdlib>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

namespace orrery::tools {

/// Whether `what` is `there`. In .ci/run, which installs all of it, it has to be.
inline bool is_there(bool there, const std::string& what) {
  CAPTURE(what);
  CHECK((there || std::getenv("ORRERY_ALL_TESTS") == nullptr));
  return there;
}

/// Whether all of these commands are there, as above.
inline bool are_there(const std::vector<std::string>& commands) {
  return std::all_of(commands.begin(), commands.end(), [](const std::string& command) {
    return is_there(program::shell("command -v " + command).exit_code == 0, command);
  });
}

}  // namespace orrery::tools
