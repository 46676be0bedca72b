// Chapter 9. Tests of the program under OpenMP's environment variables: the same bits, on the threads there are.
#include <doctest/doctest.h>

#include "tests/apps/run_program.h"

using namespace orrery::program;

TEST_CASE("fewer threads than asked for give the same bits, and the start says how many there are") {
  const auto train = [](const std::string& variable) {
    return shell(variable + " timeout 60 " + quoted_program + "toy --steps 3 --threads 2 --hash 2>&1");
  };
  const Result usual = train("");
  REQUIRE(usual.exit_code == 0);
  REQUIRE(hash_in(usual.text).size() > 10);
  for (const std::string variable :
       {"OMP_THREAD_LIMIT=1", "OMP_MAX_ACTIVE_LEVELS=0", "OMP_DYNAMIC=true", "OMP_NUM_THREADS=1"}) {
    CAPTURE(variable);
    const Result result = train(variable);
    CHECK(result.exit_code == 0);
    CHECK(hash_in(result.text) == hash_in(usual.text));
    const bool one = variable == "OMP_THREAD_LIMIT=1" || variable == "OMP_MAX_ACTIVE_LEVELS=0";
    CHECK(contains(result.text, one ? "1 thread, " : "2 threads, "));
  }
}
