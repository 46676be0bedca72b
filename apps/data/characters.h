// Chapter 9. The characters of a text, one after another.
#pragma once

#include <string_view>

#include "core/error.h"
#include "core/utf8.h"

namespace orrery {

/// ASCII's whitespace.
inline constexpr std::string_view ascii_space = " \t\n\v\f\r";

/// Calls each(code, at, bytes) for every character of `text`: its code point, where it begins and how long it is.
/// Error: text that is not UTF-8.
template <class Each> void for_each_character(std::string_view text, const Each& each) {
  for (size_t at = 0; at < text.size();) {
    const Character found = first_character(text.substr(at));
    check(found.bytes > 0, "text", "is not UTF-8: byte ", at + 1, " begins no character");
    each(found.code, at, found.bytes);
    at += found.bytes;
  }
}

}  // namespace orrery
