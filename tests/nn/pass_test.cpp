// Chapter 5. Pass: what identifies its draws, and which passes are refused.
#include "nn/pass.h"

#include <doctest/doctest.h>

using namespace orrery;

TEST_CASE("draws carry seed, step and micro-batch, and are numbered") {
  nn::Pass pass = nn::Pass::training(7, 3, 2);
  CHECK(pass.train);
  const Draw first = pass.next_draw(), second = pass.next_draw();
  CHECK(first.seed == 7);
  CHECK(first.step == 3);
  CHECK(first.micro == 2);
  CHECK(first.index == 0);
  CHECK(second.index == 1);
  CHECK_FALSE(nn::Pass::inference().train);
}

TEST_CASE("where nothing is dropped no draw is used up") {
  nn::Pass pass = nn::Pass::training(7, 3);
  pass.draw_for(0);
  CHECK(pass.draws == 0);
  CHECK(pass.draw_for(0.1).index == 0);
  CHECK(pass.draw_for(0.1).index == 1);
  CHECK(pass.draw_for(0.1).seed == 7);
}

TEST_CASE("a step or micro-batch whose masks would be another's is refused") {
  constexpr i64 steps = i64{1} << 32;
  CHECK(nn::Pass::training(1, steps - 1, 65535).micro == 65535);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, 1, 65536), "pass: micro must be in [0, 65536), not 65536", Error);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, 1, -1), "pass: micro must be in [0, 65536), not -1", Error);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, steps), "pass: step must be in [0, 2^32), not 4294967296", Error);
  CHECK_THROWS_WITH_AS(nn::Pass::training(1, -1), "pass: step must be in [0, 2^32), not -1", Error);
}
