// Chapter 9. Pictures of a tape show what the engine computes.
#include <doctest/doctest.h>

#include "apps/figure/figures.h"
#include "tests/core/support.h"

using namespace orrery;
using small::times;

TEST_CASE("the graph of a b + c: five numbers, their gradients, and a slope on each of four edges") {
  const std::string picture = draw_tape();
  for (const std::string words : {"value 2<", "value 3<", "value 4<", "value 6<", "value 10<"})
    CHECK(times(picture, words) == 1);
  CHECK(times(picture, "gradient 3<") == 1);
  CHECK(times(picture, "gradient 2<") == 1);
  CHECK(times(picture, "gradient 1<") == 3);
  CHECK(times(picture, "slope 3<") == 1);
  CHECK(times(picture, "slope 2<") == 1);
  CHECK(times(picture, "slope 1<") == 2);
}

TEST_CASE("a number with two users has the sum of both parts") {
  const std::string picture = draw_twice();
  CHECK(times(picture, "gradient 4<") == 1);
  CHECK(times(picture, "gradient 8<") == 1);
  CHECK(times(picture, "slope ") == 4);
}
