// Chapter 1. How the message of an error is composed, and which characters of it are replaced.
#include "core/error.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "core/utf8.h"

namespace orrery {
namespace {

// Whether a character controls the line instead of being shown in it: the control characters C0, DEL and C1, Unicode's
// line breaks, and its direction marks (Unicode Standard Annex 9, section 2).
bool is_control(size_t code) {
  struct Range {
    size_t first, last;
  };
  constexpr std::array<Range, 6> ranges{
      {{0, 0x1F}, {0x7F, 0x9F}, {0x61C, 0x61C}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}}};
  return std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.first <= code && code <= r.last; });
}

std::string cleaned(std::string_view text, bool keep_lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    const bool shown = c.bytes > 0 && (!is_control(c.code) || (keep_lines && c.code == '\n'));
    const size_t bytes = std::max<size_t>(c.bytes, 1);
    if (shown)
      result += text.substr(0, bytes);
    else
      result += c.code == '\n' && c.bytes > 0 ? "\\n" : "?";
    text.remove_prefix(bytes);
  }
  return result;
}

// The beginning of `text`: at most `most` bytes, and only whole characters; and whether that is all of it.
struct Cut {
  std::string_view text;
  bool whole;
};
Cut cut(std::string_view text, size_t most) {
  if (text.size() <= most) return {text, true};
  size_t length = most;
  while (length > 0 && continues_character(text[length])) --length;  // not inside a character
  return {text.substr(0, length), false};
}

void write_foreign(std::ostream& out, std::string_view text) {
  constexpr size_t longest_path = 4096;
  const Cut part = cut(text, longest_path);
  out << harmless(part.text) << (part.whole ? "" : "...");
}

}  // namespace

std::string harmless(std::string_view text) { return cleaned(text, false); }

std::string harmless_lines(std::string_view text) { return cleaned(text, true); }

std::string printable(std::string_view text) {
  constexpr size_t most = 100;
  const Cut part = cut(text, most);
  return "'" + harmless(part.text) + (part.whole ? "'" : "...'");
}

Error::Error(std::string_view operation, std::string_view rule, std::string_view details)
    : std::runtime_error(harmless(operation) + ": " + harmless_lines(rule) + harmless_lines(details)),
      rule_(harmless_lines(rule)) {}

MessagePart::MessagePart(const char* text)
    : value_(text), write_([](std::ostream& out, const void* part) { out << static_cast<const char*>(part); }) {}
MessagePart::MessagePart(const std::string& text)
    : value_(&text),
      write_([](std::ostream& out, const void* part) { write_foreign(out, *static_cast<const std::string*>(part)); }) {}
MessagePart::MessagePart(const std::string_view& text)
    : value_(&text), write_([](std::ostream& out, const void* part) {
        write_foreign(out, *static_cast<const std::string_view*>(part));
      }) {}
MessagePart::MessagePart(const Lines& lines)
    : value_(&lines),
      write_([](std::ostream& out, const void* part) { out << static_cast<const Lines*>(part)->text; }) {}

void fail_with(std::string_view operation, std::initializer_list<MessagePart> parts) {
  std::ostringstream rule;
  for (const MessagePart& part : parts) rule << part;
  throw Error(operation, rule.str());
}

}  // namespace orrery
