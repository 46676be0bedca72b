// Chapter 9. The characters of a text, one after another, and what Unicode says of them, as utf8proc knows it: white
// space, one spelling of a line, small letters.
//
// Words and characters of a line, as the tools count them that score translations. What BLEU counts depends on what a
// word is ("A Call for Clarity in Reporting BLEU Scores", Post 2018). Two answers are in use. multi-bleu.perl of Moses
// takes the line as it stands: words are what whitespace separates. sacreBLEU takes a line as people write it and
// separates punctuation itself, by the rules of mteval-v13a.pl, the script of the WMT evaluations. chrF counts
// characters, and leaves whitespace out. All text is UTF-8; text that is not is an error.
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

namespace orrery::translate {

/// The letters A to Z become small, and no others, as Perl's lc does on bytes.
std::string ascii_lowercase(std::string_view text);

/// The words of a line with one space between two of them. Whitespace is ASCII's, as in Perl on bytes: a no-break space
/// is part of a word.
std::string words_of(std::string_view line);

/// The words of a line by sacreBLEU's tokeniser 13a, with one space between two of them:
///   "Er zahlte 1.000,50 &quot;Euro&quot;."  ->  "Er zahlte 1.000,50 " Euro " ."
/// 1. The mark <skipped> is left out, and &quot; &amp; &lt; &gt; become characters, in this order.
/// 2. Each ASCII symbol but ' , - . becomes a word.
/// 3. A point or comma becomes a word unless it stands between two digits; a hyphen does after a digit.
/// Whitespace is Unicode's, as in Python.
std::string words_13a(std::string_view line);

/// The characters of a line without its whitespace, Unicode's as in Python.
std::string without_whitespace(std::string_view line);

}  // namespace orrery::translate
