// Chapter 7. Tests of the mistakes that no derivative shows: their rows pass, their checks do not.
#include <doctest/doctest.h>

#include "apps/check/zoo/bug_zoo_rows.h"

using namespace orrery;

TEST_CASE("each mistake fails its check, which the correct version passes; its rows in the table of proofs pass") {
  size_t rows = 0;
  for (const nn::Bug& bug : nn::bugs_found_without_derivatives()) {
    CAPTURE(bug.name);
    CHECK(bug.check() != "");
    CHECK(bug.check_right() == "");
    for (const Sample& sample : bug.samples) CHECK(gradcheck(sample.build(f64), sample.options));
    rows += bug.samples.size();
  }
  CHECK(rows >= 9);
}
