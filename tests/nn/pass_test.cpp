// Chapter 5. Pass: the names of its draws.
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
