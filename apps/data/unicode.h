// Chapter 9. The characters of a text, one after another, and what Unicode says of them, as utf8proc knows it: white
// space, one spelling of a line, small letters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/utf8.h"

namespace orrery {

/// White space as Python's str.isspace has it: Unicode's White_Space, and the separators 1C to 1F.
bool is_white_space(size_t code);

/// Unicode's categories L and N.
bool is_letter(size_t code);
bool is_number(size_t code);

/// A line in one spelling, so that what looks the same is the same. Every white space, also a tab, a carriage return or
/// a no-break space, becomes a space; soft hyphens, zero-width spaces and byte order marks are left out; letters and
/// their marks are composed (Unicode's normalization form C). A line in which more than 30 marks follow one another is
/// not composed: it is no text, and would take very long. Error: text that is not UTF-8.
std::string normalized(std::string_view line);

/// All letters become small, as Python's str.lower does; the language does not matter. A Greek sigma at the end of a
/// word becomes its final form. Error: text that is not UTF-8.
std::string lowercase(std::string_view text);

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
