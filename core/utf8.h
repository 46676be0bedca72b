// Chapter 1. UTF-8: decoding one character.
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery {

/// A Unicode character in a text.
struct Character {
  size_t code = 0;   ///< its code point
  size_t bytes = 0;  ///< its length; 0 if there is no valid character
};

/// Whether a byte of UTF-8 belongs to a character that begins before it.
constexpr bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// The bytes of a character, as its first byte announces them; whether it is valid is not looked at.
constexpr size_t announced_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0xF0) return 4;
  if (byte >= 0xE0) return 3;
  return byte >= 0xC0 ? 2 : 1;
}

/// The first character of `text`, which must not be empty.
Character first_character(std::string_view text);

}  // namespace orrery
