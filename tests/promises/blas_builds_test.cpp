// Chapter 8. Tests with Debian's other builds of OpenBLAS, which tests/promises/fetch_blas_builds downloads.
#include <filesystem>

#include "tests/apps/run_program.h"

using namespace orrery;
using program::contains;
using program::Result;
using program::shell;

namespace {

std::string folder_of(const std::string& build) {
  return ORRERY_SOURCE_DIR "/build/openblas/usr/lib/x86_64-linux-gnu/openblas-" + build;
}

bool builds_are_there() {
  for (const std::string build : {"pthread", "serial"})
    if (!tools::is_there(std::filesystem::exists(folder_of(build) + "/libopenblas.so.0"), build)) return false;
  return true;
}

// Runs a command with one of the builds.
Result with_build(const std::string& build, const std::string& command) {
  return shell("LD_LIBRARY_PATH='" + folder_of(build) + "' " + command + " 2>&1");
}

const std::string toy = program::quoted_program + "toy --steps 20 --d-model 40 --products blas --hash ";

// The hash of a training, which must have succeeded and named its build of OpenBLAS.
std::string hash_of(const Result& training, const std::string& name) {
  CAPTURE(training.text);
  CHECK(training.exit_code == 0);
  CHECK(contains(training.text, "(" + name + ")"));
  const std::string hash = program::hash_in(training.text);
  CHECK(hash.size() == 21);  // "hash " and 16 digits
  return hash;
}

}  // namespace

TEST_CASE("promise 4: OpenBLAS with threads of its own gives the bits of the build with OpenMP") {
  if (!builds_are_there()) return;
  const std::string expected = hash_of(shell(toy + "2>&1"), "OpenMP");
  for (const std::string threads : {"1", "2", "4"}) {
    CHECK(hash_of(shell(toy + "2>&1 --threads " + threads), "OpenMP") == expected);
    CHECK(hash_of(with_build("pthread", toy + "--threads " + threads), "pthreads") == expected);
  }
  const Result expected_of_user = shell("'" ORRERY_OWN_USER "'"),
               of_user = with_build("pthread", "'" ORRERY_OWN_USER "'");
  CHECK(of_user.exit_code == 0);
  CHECK(of_user.text != "");
  CHECK(of_user.text == expected_of_user.text);
}

TEST_CASE("promise 4: OpenBLAS without threads computes for one thread, and is refused for more") {
  if (!builds_are_there()) return;
  CHECK(hash_of(with_build("serial", toy + "--threads 1"), "none") == hash_of(shell(toy + "2>&1"), "OpenMP"));
  const Result refused = with_build("serial", toy + "--threads 2");
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.text,
                 "this OpenBLAS was built without threads and gives wrong products when 2 threads call it; install "
                 "libopenblas0-openmp (or libopenblas0-pthread), or run with --threads 1"));
  CHECK(program::hash_in(refused.text) == "");
}
