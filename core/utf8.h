// Chapter 1. UTF-8: decoding one character.
//
// Serves: core/tensor.h
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery {

/// A Unicode character in a text.
struct Character {
  size_t code = 0;   ///< its code point
  size_t bytes = 0;  ///< its length; 0 if there is no valid character
};

/// The first character of `text`, which must not be empty.
Character first_character(std::string_view text);

}  // namespace orrery
