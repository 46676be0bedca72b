// Chapter 7. Rules that the fields of configurations share.
#include "nn/models/config_rules.h"

#include "tests/core/support.h"

#include <doctest/doctest.h>

using namespace orrery;
using namespace orrery::nn;

TEST_CASE("a rule names the operation, the field and its value") {
  CHECK_NOTHROW(config_json::check_positive("model", "d_ff", 1));
  CHECK(small::error_of([] { config_json::check_positive("model", "d_ff", 0); }) ==
        "model: d_ff must be positive, not 0");
  CHECK_NOTHROW(config_json::check_probability("model", "dropout", 0));
  for (const double p : {-0.1, 1.0, double{NAN}})
    CHECK(small::error_of([&] {
            config_json::check_probability("model", "dropout", p);
          }).starts_with("model: dropout must be in [0, 1), not "));
}

TEST_CASE("a count is exact up to 2^53, and 2^53 beyond") {
  CHECK(config_json::whole(174'604'259'328.0) == 174'604'259'328);
  CHECK(config_json::whole(0x1p53) == (i64{1} << 53));
  CHECK(config_json::whole(1e300) == (i64{1} << 53));
}
