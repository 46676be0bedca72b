// Chapter 9. What Unicode says of characters, as utf8proc knows it: white space, one spelling of a line, small letters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

}  // namespace orrery
