// Chapter 8. Tests with Debian's other builds of OpenBLAS, which tests/promises/fetch_blas_builds downloads.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/apps/run_program.h"

using namespace orrery;
using program::contains;
using program::Result;
using program::shell;

namespace {

// Runs a command with one of the builds, "pthread" or "serial".
Result with_build(const std::string& build, const std::string& command) {
  return shell("LD_LIBRARY_PATH='" ORRERY_SOURCE_DIR "/build/openblas/usr/lib/x86_64-linux-gnu/openblas-" + build +
               "' " + command + " 2>&1");
}

bool builds_are_there() {
  const bool there = std::filesystem::exists(ORRERY_SOURCE_DIR "/build/openblas/usr");
  CHECK((there || std::getenv("ORRERY_ALL_TESTS") == nullptr));  // .ci/run downloads them
  return there;
}

const std::string toy = "'" ORRERY_PROGRAM "' toy --steps 20 --d-model 40 --hash ";

std::string hash_in(const Result& result) {
  CAPTURE(result.text);
  CHECK(result.exit_code == 0);
  const size_t at = result.text.find("hash ");
  REQUIRE(at != std::string::npos);
  return result.text.substr(at, 21);
}

}  // namespace

TEST_CASE("promise 4: OpenBLAS with threads of its own gives the bits of the build with OpenMP") {
  if (!builds_are_there()) return;
  const std::string expected = hash_in(shell(toy + "2>&1"));
  for (const std::string threads : {"1", "2", "4"}) {
    const Result result = with_build("pthread", toy + "--threads " + threads);
    CHECK(contains(result.text, "(pthreads)"));
    CHECK(hash_in(result) == expected);
  }
  CHECK(with_build("pthread", "'" ORRERY_OWN_USER "'").text == shell("'" ORRERY_OWN_USER "'").text);
}

TEST_CASE("promise 4: OpenBLAS without threads computes for one thread, and is refused for more") {
  if (!builds_are_there()) return;
  CHECK(hash_in(with_build("serial", toy + "--threads 1")) == hash_in(shell(toy + "2>&1")));
  const Result refused = with_build("serial", toy + "--threads 2");
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.text,
                 "this OpenBLAS was built without threads and gives wrong products when 2 threads call it; install "
                 "libopenblas0-openmp (or libopenblas0-pthread), or run with --threads 1"));
  CHECK_FALSE(contains(refused.text, "hash"));
}
