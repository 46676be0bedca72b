// Chapter 9. Pictures of a tape show what the engine computes.
#include <doctest/doctest.h>

#include "apps/figure/figures.h"

using namespace orrery;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the graph of a b + c: five numbers, their gradients, and a slope on each of four edges") {
  const std::string picture = draw_tape();
  for (const std::string words : {"value 2<", "value 3<", "value 4<", "value 6<", "value 10<"})
    CHECK(count(picture, words) == 1);
  CHECK(count(picture, "gradient 3<") == 1);
  CHECK(count(picture, "gradient 2<") == 1);
  CHECK(count(picture, "gradient 1<") == 3);
  CHECK(count(picture, "slope 3<") == 1);
  CHECK(count(picture, "slope 2<") == 1);
  CHECK(count(picture, "slope 1<") == 2);
}

TEST_CASE("a number with two users has the sum of both parts") {
  const std::string picture = draw_twice();
  CHECK(count(picture, "gradient 4<") == 1);
  CHECK(count(picture, "gradient 8<") == 1);
  CHECK(count(picture, "slope ") == 4);
}
