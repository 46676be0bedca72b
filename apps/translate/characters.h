// Chapter 9. The characters of a line, one after another.
//
// Serves: nn/models/transformer.h
#pragma once

#include <string_view>

#include "core/error.h"
#include "core/utf8.h"

namespace orrery::translate {

/// Calls each(code, at, bytes) for every character of a line: its code point, where it begins and how long it is.
/// Error: text that is not UTF-8.
template <class Each>
void for_each_character(std::string_view line, const Each& each) {
  for (size_t at = 0; at < line.size();) {
    const Character found = first_character(line.substr(at));
    check(found.bytes > 0, "score", "the text is not UTF-8: byte ", at + 1, " of a line begins no character");
    each(found.code, at, found.bytes);
    at += found.bytes;
  }
}

}  // namespace orrery::translate
