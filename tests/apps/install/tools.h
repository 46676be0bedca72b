// Chapter 9. Tools that only some tests need: where one is missing, the test has nothing to show.
#pragma once

#include <cstdlib>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

namespace orrery::tools {

/// Whether all of these commands are there. In .ci/run, which installs them, they have to be.
inline bool are_there(const std::vector<std::string>& commands) {
  for (const std::string& command : commands) {
    if (program::shell("command -v " + command).exit_code == 0) continue;
    CAPTURE(command);
    CHECK(std::getenv("ORRERY_ALL_TESTS") == nullptr);
    return false;
  }
  return true;
}

}  // namespace orrery::tools
