// Chapter 8. Runs programs, and test cases of this one, under other environment variables.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/apps/run_program.h"

namespace orrery::promises {

/// Arguments of env(1). OpenBLAS reads its variable, and OpenMP its own, when a program starts.
inline constexpr const char *automatic_kernel = "-u OPENBLAS_CORETYPE", *haswell_kernel = "OPENBLAS_CORETYPE=Haswell",
                            *narrow_kernel = "OPENBLAS_CORETYPE=Prescott";  // 128 bits: not used by wider builds

/// Runs `command` with the variables of `environment`, after the shell has done what `before` says. Threads that wait
/// sleep: more threads than cores, or a busy machine, make threads that spin up to 50 times slower.
inline program::Result run(const std::string& environment, const std::string& command, const std::string& before = "") {
  return program::shell(before + "env " + environment + " OMP_WAIT_POLICY=passive " + command);
}

/// Runs one test case of this program, and returns what it wrote; `test_case` is doctest's pattern, without commas.
inline std::string check_rerun(const std::string& environment, const std::string& test_case,
                               const std::string& before = "") {
  CAPTURE(environment);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const program::Result child = run(environment, "'" + self + "' --test-case='" + test_case + "'", before);
  CAPTURE(child.text);
  CHECK(child.exit_code == 0);
  CHECK(program::contains(child.text, " 1 passed | 0 failed"));
  return child.text;
}

/// First line of a test case that uses more threads than there are cores: unless waiting threads sleep already, runs
/// the case again where they do, and returns true.
inline bool checked_with_sleeping_threads(const std::string& test_case) {
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  if (policy != nullptr && std::string(policy) == "passive") return false;
  check_rerun("", test_case);
  return true;
}

}  // namespace orrery::promises
