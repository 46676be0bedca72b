// Chapter 1. Tests of errors: operation, rule, details.
#include "core/error.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("an error says the operation and the rule") {
  CHECK(error_of([] { fail("matmul", "inner sizes differ (", 64, " != ", 128, ")"); }) ==
        "matmul: inner sizes differ (64 != 128)");
}

TEST_CASE("check throws only when the rule is broken") {
  CHECK(error_of([] { check(true, "op", "never"); }).empty());
  CHECK(error_of([] { check(1 + 1 == 3, "op", "two is not ", 3); }) == "op: two is not 3");
}

namespace {
/// Counts how often it is written.
struct Counted {
  int* written;
  friend std::ostream& operator<<(std::ostream& out, const Counted& part) { return ++*part.written, out << "part"; }
};
}  // namespace

TEST_CASE("the parts of a message are not written while all is well") {
  int written = 0;
  check(true, "op", Counted{&written});
  CHECK(written == 0);
  CHECK_THROWS_AS(check(false, "op", Counted{&written}), Error);
  CHECK(written == 1);
}

TEST_CASE("details follow the rule, and the rule stays known alone") {
  const Error error("add", "shapes differ", "\n  input 0: [2]");
  CHECK(std::string(error.what()) == "add: shapes differ\n  input 0: [2]");
  CHECK(error.rule() == "shapes differ");
  const std::runtime_error& standard = error;
  CHECK(std::string(standard.what()).starts_with("add: "));
}
