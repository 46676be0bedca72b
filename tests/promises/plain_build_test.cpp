// Chapter 8. Tests that a program linked to the library with plain flags computes what the library's own options say.
#include <doctest/doctest.h>

#include "tests/apps/run_program.h"

using namespace orrery;

// Both are made of plain_user.cpp: one as a user compiles it who knows nothing of our options, with -O0 and for any
// CPU, the other with the options of the library. If the library's arithmetic were compiled in their files too, the
// linker would keep the first copy, theirs, and the two programs would differ.
TEST_CASE("promise 1: a user's program, compiled with plain flags, gets the bits of the library") {
  const program::Result plain = program::shell("'" ORRERY_PLAIN_USER "'"),
                        own = program::shell("'" ORRERY_OWN_USER "'");
  CHECK(plain.exit_code == 0);
  CHECK(plain.text.size() == 17);
  CHECK(plain.text == own.text);
}

// The program never says how many threads there are to be, so that OpenMP's environment decides. A loop that got fewer
// threads than it asked for once ended in products that waited for ever.
TEST_CASE("promise 1: whatever OpenMP's environment says of threads, the library's bits are the same") {
  const std::string usual = program::shell("'" ORRERY_PLAIN_USER "'").text;
  REQUIRE(usual.size() == 17);
  for (const std::string variables :
       {"OMP_DYNAMIC=true", "OMP_DYNAMIC=true OMP_NUM_THREADS=4", "OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=4",
        "OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=4", "OMP_NUM_THREADS=3"}) {
    CAPTURE(variables);
    const program::Result result = program::shell(variables + " timeout 60 '" ORRERY_PLAIN_USER "'");
    CHECK(result.exit_code == 0);
    CHECK(result.text == usual);
  }
}
