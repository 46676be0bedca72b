// Chapter 1. Tests of UTF-8: characters of every length, and bytes that are none.
#include "core/utf8.h"

#include <doctest/doctest.h>

#include <string>

using namespace orrery;

TEST_CASE("a character of one to four bytes is read with its code and its length") {
  const auto is = [](const std::string& text, size_t code, size_t bytes) {
    const Character c = first_character(text + "rest");
    CHECK(c.code == code);
    CHECK(c.bytes == bytes);
    CHECK(announced_bytes(text[0]) == bytes);
  };
  is("a", 'a', 1);
  is(std::string(1, '\0'), 0, 1);
  is("\xC3\xA9", 0xE9, 2);
  is("\xE2\x80\xAE", 0x202E, 3);
  is("\xF0\x9F\x98\x80", 0x1F600, 4);
}

TEST_CASE("all bytes of a character but the first continue it") {
  const std::string text = "a\xC3\xA9\xE2\x80\xAE\xF0\x9F\x98\x80";
  std::string continues;
  for (const char byte : text) continues += continues_character(byte) ? 'c' : '-';
  CHECK(continues == "--c-cc-ccc");
}

TEST_CASE("bytes that begin no character have length 0") {
  for (const std::string text : {"\x80", "\xFF", "\xC3", "\xC3(", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                                 "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80"}) {
    CAPTURE(text.size());
    CHECK(first_character(text).bytes == 0);
  }
}
