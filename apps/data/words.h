// Chapter 9. Words and characters of a line, as the tools count them that score translations.
//
// What BLEU counts depends on what a word is ("A Call for Clarity in Reporting BLEU Scores", Post 2018). Two answers
// are in use. multi-bleu.perl of Moses takes the line as it stands: words are what whitespace separates. sacreBLEU
// takes a line as people write it and separates punctuation itself, by the rules of mteval-v13a.pl, the script of the
// WMT evaluations. chrF counts characters, and leaves whitespace out.
// All text is UTF-8; text that is not is an error.
#pragma once

#include <string>
#include <string_view>

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
