// Chapter 1. UTF-8: where a character ends, and what is none.
//
// Serves: core/tensor.h
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery {

/// A character of Unicode, as it stands in a text.
struct Character {
  size_t code = 0;   ///< Unicode's number of it
  size_t bytes = 0;  ///< that it takes; 0 where there is no character
};

/// The character that begins a text, which is not empty.
Character first_character(std::string_view text);

}  // namespace orrery
