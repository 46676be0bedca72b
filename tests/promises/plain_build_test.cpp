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
