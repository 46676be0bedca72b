// Chapter 5. Tests of schedules: known values, borders, and what is refused.
#include "optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::optim;
using doctest::Approx;
using small::error_of;

TEST_CASE("noam is equation 3 of the paper") {
  CHECK(noam(1, 512, 4000) == Approx(1.746928107421711e-7).epsilon(1e-12));
  CHECK(noam(4000, 512, 4000) == Approx(6.987712429686843e-4).epsilon(1e-12));
  CHECK(noam(100000, 512, 4000) == Approx(1.3975424859373686e-4).epsilon(1e-12));
  CHECK(noam(400, 64, 400) == Approx(0.125 * 0.05).epsilon(1e-12));
  CHECK(noam(399, 64, 400) < noam(400, 64, 400));
  CHECK(noam(401, 64, 400) < noam(400, 64, 400));
}

TEST_CASE("inverse_sqrt rises from its start rate to its peak and falls with the root") {
  CHECK(inverse_sqrt(1, 1.0, 4, 0.2) == Approx(0.4).epsilon(1e-12));
  CHECK(inverse_sqrt(2, 1.0, 4, 0.2) == Approx(0.6).epsilon(1e-12));
  CHECK(inverse_sqrt(4, 1.0, 4, 0.2) == 1.0);
  CHECK(inverse_sqrt(16, 1.0, 4, 0.2) == 0.5);
  CHECK(inverse_sqrt(1, 8e-4, 4) == Approx(2e-4).epsilon(1e-12));
}

TEST_CASE("warmup_cosine rises to its peak, passes half way at half time and ends at its floor") {
  CHECK(warmup_cosine(5, 1.0, 10, 110, 0.1) == 0.5);
  CHECK(warmup_cosine(10, 1.0, 10, 110, 0.1) == 1.0);
  CHECK(warmup_cosine(60, 1.0, 10, 110, 0.1) == Approx(0.55).epsilon(1e-12));
  CHECK(warmup_cosine(35, 1.0, 10, 110, 0.0) == Approx((1 + std::sqrt(0.5)) / 2).epsilon(1e-12));
  CHECK(warmup_cosine(110, 1.0, 10, 110, 0.1) == Approx(0.1).epsilon(1e-12));
  CHECK(warmup_cosine(500, 1.0, 10, 110, 0.1) == Approx(0.1).epsilon(1e-12));
  CHECK(warmup_cosine(1, 1.0, 0, 2) == Approx(0.5).epsilon(1e-12));
}

TEST_CASE("linear_cooldown is 1, then falls to a last step that still moves") {
  CHECK(linear_cooldown(1, 10, 6) == 1);
  CHECK(linear_cooldown(6, 10, 6) == 1);
  CHECK(linear_cooldown(7, 10, 6) == Approx(0.8).epsilon(1e-12));
  CHECK(linear_cooldown(10, 10, 6) == Approx(0.2).epsilon(1e-12));
  CHECK(linear_cooldown(11, 10, 6) == 0);
  CHECK(linear_cooldown(100, 10, 6) == 0);
  CHECK(linear_cooldown(10, 10, 10) == 1);
  CHECK(linear_cooldown(1, 4, 0) == Approx(0.8).epsilon(1e-12));
}

TEST_CASE("constant is constant") {
  CHECK(constant(1, 0.3) == 0.3);
  CHECK(constant(1000000, 0.3) == 0.3);
}

TEST_CASE("steps and lengths out of range are errors that name the schedule") {
  CHECK(error_of([] { constant(0, 1); }) == "constant: steps are counted from 1, got 0");
  CHECK(error_of([] { noam(0, 512, 4000); }) == "noam: steps are counted from 1, got 0");
  CHECK(error_of([] { noam(1, 512, 0); }) == "noam: warmup must be at least 1, got 0");
  CHECK(error_of([] { noam(1, 0, 1); }) == "noam: d_model must be positive, got 0");
  CHECK(error_of([] { inverse_sqrt(0, 1, 1); }) == "inverse_sqrt: steps are counted from 1, got 0");
  CHECK(error_of([] { inverse_sqrt(1, 1, 0); }) == "inverse_sqrt: warmup must be at least 1, got 0");
  CHECK(error_of([] { warmup_cosine(-1, 1, 1, 2); }) == "warmup_cosine: steps are counted from 1, got -1");
  CHECK(error_of([] { warmup_cosine(1, 1, 5, 5); }) == "warmup_cosine: total (5) must be larger than warmup (5)");
  CHECK(error_of([] { linear_cooldown(0, 2, 1); }) == "linear_cooldown: steps are counted from 1, got 0");
  CHECK(error_of([] { linear_cooldown(1, 2, 3); }) == "linear_cooldown: from (3) must be in [0, total = 2]");
}
