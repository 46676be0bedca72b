// Chapter 9. One spelling of a line, and small letters, by utf8proc's tables.
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
