// Chapter 9. Tests of filling, cutting and breaking text.
#include "apps/program/columns.h"

#include <doctest/doctest.h>

using namespace orrery;

TEST_CASE("fitted fills, or cuts the end or the beginning") {
  CHECK(fitted("abc", 5) == "abc  ");
  CHECK(fitted("abcdef", 6) == "abcdef");
  CHECK(fitted("abcdefg", 6) == "abcd..");
  CHECK(fitted_end("abcdefg", 6) == "..defg");
  CHECK(fitted_end("abc", 5) == "abc  ");
}

TEST_CASE("fitted_middle keeps both ends, and counts characters, not bytes") {
  CHECK(fitted_middle("abc", 5) == "abc  ");
  CHECK(fitted_middle("abcdef", 6) == "abcdef");
  CHECK(fitted_middle("abcdefghij", 7) == "ab..hij");
  CHECK(fitted_middle("abcdefghij", 6) == "ab..ij");
  const std::string e = "\xC3\xA9";
  CHECK(fitted_middle(e + e, 3) == e + e + " ");
  CHECK(fitted_middle(e + "bcdef" + e, 5) == e + ".." + "f" + e);
  CHECK(fitted_middle("\xFF\xFF", 3) == "\xFF\xFF ");
}

TEST_CASE("text is wrapped at spaces, and indented") {
  CHECK(wrapped("one\ntwo", 2) == "  one\n  two\n");
  CHECK(wrapped("", 2) == "");
  const std::string word(60, 'a');
  CHECK(wrapped(word + " " + word, 1) == " " + word + "\n   " + word + "\n");
  CHECK(wrapped(std::string(250, 'b'), 0) ==
        std::string(100, 'b') + "\n  " + std::string(98, 'b') + "\n  " + std::string(52, 'b') + "\n");
  CHECK(wrapped("a\xC3\xA9\xC3\xA9", 0, 4, 0) == "a\xC3\xA9\n\xC3\xA9\n");
}

TEST_CASE("joined puts the separator between parts, empty ones too") {
  CHECK(joined({}, ", ") == "");
  CHECK(joined({"a"}, ", ") == "a");
  CHECK(joined({"a", "", "b"}, ", ") == "a, , b");
}

TEST_CASE("numbers") { CHECK(numbers("%3ld|%.1f", 7L, 2.25) == "  7|2.2"); }
