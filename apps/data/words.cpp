// Chapter 9. Splitting at whitespace, and the tokeniser 13a: its regular expressions, written as loops.
#include "apps/data/words.h"

#include "apps/data/unicode.h"

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
