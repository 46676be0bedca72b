// Chapter 9. One spelling of a line, and small letters, by utf8proc's tables; words, split at whitespace or by the
// tokeniser 13a: its regular expressions, written as loops.
#include "apps/data/unicode.h"

#include <utf8proc.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"

namespace orrery {
namespace {

const utf8proc_property_t& properties(size_t code) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
}

// Normalization form C.
std::string composed(const std::string& text) {
  utf8proc_uint8_t* bytes = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &bytes, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  check(length >= 0, "text", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(length)};
}

// Unicode's property Cased. Those that utf8proc does not tell by category or mapping are listed, except the marks and
// modifiers among them: `is_inside_word` holds for these, so that nobody asks.
bool is_cased(i32 code) {
  const auto category = properties(static_cast<size_t>(code)).category;
  const auto within = [code](i32 first, i32 last) { return first <= code && code <= last; };
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         utf8proc_islower(code) != 0 || utf8proc_isupper(code) != 0 || code == 0xAA || code == 0xBA ||
         within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) || within(0x1F170, 0x1F189);
}

// Unicode's property Case_Ignorable: marks, modifiers and invisible characters, and the punctuation that stands inside
// words (the values MidLetter, MidNumLet and Single_Quote of Word_Break).
bool is_inside_word(i32 code) {
  constexpr std::array punctuation{
      std::to_array<i32>({'\'', '.', ':', 0xB7, 0x387, 0x55F, 0x5F4, 0x2018, 0x2019, 0x2024, 0x2027, 0xFE13, 0xFE52,
                          0xFE55, 0xFF07, 0xFF0E, 0xFF1A})};
  switch (properties(static_cast<size_t>(code)).category) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return std::find(punctuation.begin(), punctuation.end(), code) != punctuation.end();
  }
}

// The condition Final_Sigma of Unicode (SpecialCasing.txt): a letter stands before it in the word, and none after it.
bool is_at_end_of_word(const std::vector<i32>& codes, size_t at) {
  size_t before = at, after = at + 1;
  while (before > 0 && is_inside_word(codes[before - 1])) --before;
  while (after < codes.size() && is_inside_word(codes[after])) ++after;
  return before > 0 && is_cased(codes[before - 1]) && (after == codes.size() || !is_cased(codes[after]));
}

void append_utf8(std::string& text, i32 code) {
  std::array<utf8proc_uint8_t, 4> bytes;
  const auto count = utf8proc_encode_char(code, bytes.data());
  text.append(bytes.begin(), bytes.begin() + count);
}

}  // namespace

bool is_white_space(size_t code) {
  const utf8proc_property_t& known = properties(code);
  return known.category == UTF8PROC_CATEGORY_ZS || known.bidi_class == UTF8PROC_BIDI_CLASS_WS ||
         known.bidi_class == UTF8PROC_BIDI_CLASS_B || known.bidi_class == UTF8PROC_BIDI_CLASS_S;
}

bool is_letter(size_t code) {
  const auto category = properties(code).category;
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(size_t code) {
  const auto category = properties(code).category;
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

std::string normalized(std::string_view line) {
  constexpr size_t soft_hyphen = 0xAD, zero_width_space = 0x200B, byte_order_mark = 0xFEFF;
  constexpr size_t first_mark = 0x300;  // text without it and what comes after it is composed
  constexpr int most_marks = 30;        // as in Unicode's Stream-Safe Text Format
  std::string result;
  bool may_compose = false, is_text = true;
  int marks = 0;
  for_each_character(line, [&](size_t code, size_t at, size_t bytes) {
    if (code == soft_hyphen || code == zero_width_space || code == byte_order_mark) return;
    if (code >= first_mark) may_compose = true;
    marks = code >= first_mark && properties(code).combining_class > 0 ? marks + 1 : 0;
    if (marks > most_marks) is_text = false;
    if (is_white_space(code))
      result += ' ';
    else
      result += line.substr(at, bytes);
  });
  return may_compose && is_text ? composed(result) : result;
}

std::string lowercase(std::string_view text) {
  constexpr i32 sigma = 0x3A3, final_sigma = 0x3C2, capital_i_with_dot = 0x130;
  std::vector<i32> codes;
  for_each_character(text, [&](size_t code, size_t, size_t) { codes.push_back(static_cast<i32>(code)); });
  std::string result;
  for (size_t i = 0; i < codes.size(); ++i) {
    const i32 code = codes[i];
    if (code == capital_i_with_dot)
      result += "i\u0307";  // the only capital whose small letter is two characters: i, and a dot above
    else
      append_utf8(result, code == sigma && is_at_end_of_word(codes, i) ? final_sigma : utf8proc_tolower(code));
  }
  return result;
}

}  // namespace orrery

namespace orrery::translate {
namespace {

// \s of Perl on bytes.
bool is_ascii_space(size_t code) { return code == ' ' || (code >= '\t' && code <= '\r'); }

// What stands between whitespace, joined with `separator`.
std::string joined(std::string_view line, bool (*is_space)(size_t code), std::string_view separator) {
  std::string result;
  bool after_space = false;
  for_each_character(line, [&](size_t code, size_t at, size_t bytes) {
    if (!is_space(code)) {
      if (after_space && !result.empty()) result += separator;
      result += line.substr(at, bytes);
    }
    after_space = is_space(code);
  });
  return result;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_no_digit(char c) { return !is_digit(c); }
bool is_point_or_comma(char c) { return c == '.' || c == ','; }
bool is_hyphen(char c) { return c == '-'; }

// [\{-\~\[-\` -\&\(-\+\:-\@\/]: the symbols of ASCII, and the space, but not ' , - and .
bool is_symbol(char c) {
  const auto between = [c](char low, char high) { return low <= c && c <= high; };
  return between('{', '~') || between('[', '`') || between(' ', '&') || between('(', '+') || between(':', '@') ||
         c == '/';
}

std::string with_symbols_apart(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_symbol(c)) result += ' ';
    result += c;
    if (is_symbol(c)) result += ' ';
  }
  return result;
}

// Replaces every pair (first)(second) by BEFORE first " " second AFTER. A pair that was replaced is passed over as a
// whole, as by a regular expression: its second character begins no other pair. Bytes serve as well as characters,
// because no byte of a character outside ASCII is a digit, a point, a comma or a hyphen.
std::string with_pairs_apart(std::string_view text, bool (*is_first)(char), bool (*is_second)(char),
                             std::string_view before, std::string_view after) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = i + 1 < text.size() && is_first(text[i]) && is_second(text[i + 1]);
    if (pair) result += before;
    result += text[i];
    if (!pair) continue;
    result += ' ';
    result += text[++i];
    result += after;
  }
  return result;
}

}  // namespace

std::string ascii_lowercase(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string words_of(std::string_view line) { return joined(line, is_ascii_space, " "); }

std::string words_13a(std::string_view line) {
  std::string text = replaced(std::string(line), "<skipped>", "");
  text = replaced(text, "&quot;", "\"");
  text = replaced(text, "&amp;", "&");
  text = replaced(text, "&lt;", "<");
  text = replaced(text, "&gt;", ">");
  text = with_symbols_apart(' ' + text + ' ');
  text = with_pairs_apart(text, is_no_digit, is_point_or_comma, "", " ");
  text = with_pairs_apart(text, is_point_or_comma, is_no_digit, " ", "");
  text = with_pairs_apart(text, is_digit, is_hyphen, "", " ");
  return joined(text, is_white_space, " ");
}

std::string without_whitespace(std::string_view line) { return joined(line, is_white_space, ""); }

}  // namespace orrery::translate
