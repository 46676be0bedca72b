// Chapter 9. A project that takes Orrery in with add_subdirectory gets the library, and neither its tests nor its
// programs.
#include <sstream>

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using program::contains;
using program::shell;

TEST_CASE(
    "a project of a user's configures without doctest and CLI11, and builds nothing of ours that it does not ask for") {
  const TemporaryFolder folder;
  const std::string build = "'" + (folder / "build") + "'";
  const program::Result configured =
      shell("cmake -S '" ORRERY_SOURCE_DIR "/tests/outside' -D ORRERY_SOURCES='" ORRERY_SOURCE_DIR "' -G Ninja -B " +
            build + " -D CMAKE_DISABLE_FIND_PACKAGE_doctest=ON -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON 2>&1");
  CAPTURE(configured.text);
  CHECK(configured.exit_code == 0);
  const program::Result made = shell("cmake --build " + build + " -- -t commands all 2>&1");
  CHECK(made.exit_code == 0);
  CHECK(contains(made.text, "main.cpp"));
  int kernels = 0;
  std::istringstream commands(made.text);
  for (std::string one; std::getline(commands, one);) {
    if (!one.ends_with("/autograd/ops/softmax.cpp")) continue;
    ++kernels;
    CHECK(contains(one, " -O3 "));
  }
  CHECK(kernels == 1);
  // The project takes Orrery with EXCLUDE_FROM_ALL, so `all` says nothing here: look at every target that there is.
  const program::Result targets = shell("cmake --build " + build + " -- -t targets all 2>&1");
  CHECK(contains(targets.text, "orrery_library"));
  CHECK_FALSE(contains(targets.text, "orrery_program"));
  CHECK_FALSE(contains(targets.text, "orrery_tests"));
  // The build type stays the user's own choice: none.
  CHECK(contains(contents(folder / "build/CMakeCache.txt"), "CMAKE_BUILD_TYPE:STRING=\n"));
}
