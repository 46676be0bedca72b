// Chapter 9. Tests of the characters of a text, one after another.
#include "apps/data/characters.h"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "tests/core/support.h"

using namespace orrery;

TEST_CASE("every character comes once, with its code point, its place and its length") {
  std::vector<std::array<size_t, 3>> found;
  for_each_character("a\xC3\xA9\xE2\x80\xAE\xF0\x9F\x98\x80z", [&](size_t code, size_t at, size_t bytes) {
    found.push_back({code, at, bytes});
  });
  CHECK(found ==
        std::vector<std::array<size_t, 3>>{{'a', 0, 1}, {0xE9, 1, 2}, {0x202E, 3, 3}, {0x1F600, 6, 4}, {'z', 10, 1}});
  for_each_character("", [](size_t, size_t, size_t) { FAIL("there is no character"); });
}

TEST_CASE("a byte that begins no character is an error that names it, after the characters before it") {
  size_t seen = 0;
  CHECK(small::error_of([&] { for_each_character("ab\xFF", [&](size_t, size_t, size_t) { ++seen; }); }) ==
        "text: is not UTF-8: byte 3 begins no character");
  CHECK(seen == 2);
}
