// Chapter 8. Runs programs, and test cases of this one, under other environment variables.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace orrery::promises {

/// Arguments of env(1). OpenBLAS reads its variable, and OpenMP its own, when a program starts.
inline constexpr const char *automatic_kernel = "-u OPENBLAS_CORETYPE", *haswell_kernel = "OPENBLAS_CORETYPE=Haswell",
                            *sandybridge_kernel = "OPENBLAS_CORETYPE=Sandybridge";

struct Finished {
  int exit_code;
  std::string output;  ///< what it wrote to stdout
};

/// Runs `command` in a shell with the variables of `environment`. Threads that wait sleep: more threads than cores, or
/// a busy machine, make threads that spin up to 50 times slower.
inline Finished run(const std::string& environment, const std::string& command) {
  const std::string line = "env " + environment + " OMP_WAIT_POLICY=passive " + command;
  std::FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Finished result{};
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  result.exit_code = WEXITSTATUS(status);
  return result;
}

/// Runs one test case of this program; `test_case` is doctest's pattern, without commas.
inline void check_rerun(const std::string& environment, const std::string& test_case) {
  CAPTURE(environment);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const Finished child = run(environment, "'" + program + "' --test-case='" + test_case + "'");
  CAPTURE(child.output);
  CHECK(child.exit_code == 0);
  CHECK(child.output.find(" 1 passed | 0 failed") != std::string::npos);
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
