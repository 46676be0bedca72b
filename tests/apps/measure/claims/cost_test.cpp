// Chapter 9. A claim about memory where memory is not counted: it cannot be measured, and the others are.
#include <doctest/doctest.h>

#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

TEST_CASE("a claim that cannot be measured is reported, and the others are measured") {
  if (small::counts_memory()) return;  // only a build under a sanitizer has such a claim
  const TemporaryFolder folder;
  const std::string file = folder / "claims.json";
  const program::Result result =
      program::shell("(" + program::quoted_program + "claims linear-memory quadratic-cost --json '" + file + "') 2>&1");
  CHECK(result.exit_code == 1);
  CHECK(program::contains(result.text, "linear-memory: claims: this build does not count memory"));
  CHECK(program::contains(result.text, "\n1 claim: "));
  CHECK(program::contains(contents(file), "\"complete\": false"));
}
