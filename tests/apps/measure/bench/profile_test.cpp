// Chapter 9. Tests of `orrery bench profile`: its rows add up, and its table is readable.
#include "apps/measure/bench/profile.h"

#include <doctest/doctest.h>

#include <sstream>

#include "core/machine/parallel.h"

using namespace orrery;

namespace {

const ProfileRow* find(const Profile& profile, const std::string& name) {
  for (const ProfileRow& row : profile.rows)
    if (row.name == name) return &row;
  return nullptr;
}

Profile toy_profile() {
  const int before = threads();
  set_threads(1);
  const Profile profile = measure_profile(bench_config("toy"), {.config = "toy", .steps = 3});
  set_threads(before);
  return profile;
}

}  // namespace

TEST_CASE("the rows of a profile are the whole step, the slowest first") {
  const Profile profile = toy_profile();
  double seconds = 0, share = 0;
  for (size_t i = 0; i < profile.rows.size(); ++i) {
    seconds += profile.rows[i].seconds;
    share += profile.rows[i].share;
    CHECK(profile.rows[i].seconds >= 0);
    if (i > 0) CHECK(profile.rows[i].seconds <= profile.rows[i - 1].seconds);
  }
  CHECK(share == doctest::Approx(1).epsilon(1e-9));
  CHECK(seconds == doctest::Approx(profile.seconds).epsilon(1e-9));
  CHECK(profile.observed > 0);
  CHECK(profile.unobserved > 0);
}

TEST_CASE("a profile counts the calls of one step, forward and backward, and what is not an operation") {
  const Profile profile = toy_profile();
  const ProfileRow* loss = find(profile, "linear_cross_entropy");
  REQUIRE(loss);
  CHECK(loss->calls == 1);
  CHECK(loss->flop_per_second > 0);
  REQUIRE(find(profile, "clipping and Adam"));
  REQUIRE(find(profile, "the tape, and the observer"));
  CHECK(find(profile, "clipping and Adam")->direction == "");
  i64 forward = 0, backward = 0, products = 0;
  for (const ProfileRow& row : profile.rows) {
    forward += row.direction == "forward";
    backward += row.direction == "backward";
    products += row.flop_per_second > 0;
    CHECK(row.calls == static_cast<double>(static_cast<i64>(row.calls)));
  }
  CHECK(forward > 0);
  CHECK(forward == backward);
  CHECK(products >= 2);
}

TEST_CASE("a profile prints as a table of at most 100 columns that ends with what looking on cost") {
  Profile profile{.seconds = 0.004, .observed = 0.00402, .unobserved = 0.004};
  profile.rows = {{.name = "linear_with_a_name_that_is_much_too_long_for_this",
                   .direction = "backward",
                   .calls = 123456,
                   .seconds = 0.003,
                   .share = 0.75,
                   .flop_per_second = 4.5e11},
                  {.name = "softmax",
                   .direction = "forward",
                   .calls = 6,
                   .seconds = 0.001,
                   .share = 0.25,
                   .bytes_per_second = 2.5e10}};
  std::ostringstream out;
  print_profile(out, profile);
  std::istringstream lines(out.str());
  std::string line, last;
  while (std::getline(lines, line)) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
    last = line;
  }
  CHECK(last == "median step 4.020 ms observed, 4.000 ms not: what the observer costs is 0.5 %");
  profile.noise = 0.0001;  // larger than the difference
  std::ostringstream noisy;
  print_profile(noisy, profile);
  CHECK(noisy.str().ends_with("4.020 ms observed, 4.000 ms not: what the observer costs cannot be told\n"));
  CHECK(out.str().find("450.0 GF/s") != std::string::npos);
  CHECK(out.str().find("  25.0 %     25.0 GB/s\n") != std::string::npos);
}

TEST_CASE("the noise of a median is the middle half of the numbers over the root of their count, unknown of one") {
  CHECK(noise_of_median({1, 2, 4, 3}) == doctest::Approx((3 - 2) / 2.0));
  CHECK(noise_of_median({9, 1, 2, 3, 4, 5, 6, 7, 100}) == doctest::Approx((7 - 3) / 3.0));
  CHECK(noise_of_median({1}) > 1e9);
}
