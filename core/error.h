// Chapter 1. The one exception type, and the check that raises it.
//
// Every message names the operation and the rule that was broken, so that its reader knows what to change:
//   matmul: inner sizes differ (64 != 128)
// The tape (autograd/apply.h) appends one line per input: its shape and where it came from.
// A message may quote text from outside: a file name, a tensor's name, a prompt. Unchanged, an escape sequence would
// control the terminal, a newline would fake a line, and a Unicode direction mark would reverse what follows. So all
// text that is not a literal is made harmless here.
#pragma once

#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery {

/// A broken rule: `what()` is "operation: rule" followed by optional detail lines. The operation is made `harmless`,
/// the rest `harmless_lines`.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view rule, std::string_view details = "");

  /// The rule alone, for code that catches the error and adds details.
  const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

/// `text` for one line of a message: a new line becomes `\n`; other control characters, direction marks and bytes that
/// are not UTF-8 become '?'.
std::string harmless(std::string_view text);
/// The same, but line breaks stay.
std::string harmless_lines(std::string_view text);
/// One line in quotes, cut after 100 bytes: 'name'.
std::string printable(std::string_view text);

/// A part of a message that may have several lines, such as another error's; it becomes `harmless_lines`.
struct Lines {
  std::string_view text;
};

/// One part of a message: anything that `<<` writes. The part refers to its value, which is written only if the error
/// is thrown. Literals, and whatever else is a `const char*`, are written as they are; other text is made `harmless`,
/// and cut after 4096 bytes, the longest path of a file.
class MessagePart {
 public:
  template <class T>
  MessagePart(const T& value)
      : value_(&value), write_([](std::ostream& out, const void* part) { out << *static_cast<const T*>(part); }) {}
  MessagePart(const char* text);  // one type for literals of every length
  MessagePart(const std::string& text);
  MessagePart(const std::string_view& text);
  MessagePart(const Lines& lines);

  friend std::ostream& operator<<(std::ostream& out, const MessagePart& part) {
    part.write_(out, part.value_);
    return out;
  }

 private:
  const void* value_;
  void (*write_)(std::ostream& out, const void* value);
};

/// Throws an Error of `operation`. The parts, written one after another, are its rule.
[[noreturn]] void fail_with(std::string_view operation, std::initializer_list<MessagePart> parts);

template <class... Parts> [[noreturn]] void fail(std::string_view operation, const Parts&... parts) {
  fail_with(operation, {parts...});
}

/// Throws like `fail` unless `ok`; the parts are only written when the check fails.
template <class... Parts> void check(bool ok, std::string_view operation, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail_with(operation, {parts...});
}

/// Returns what `work` returns. Its errors become errors of `operation`, such as "read PATH", and keep their whole
/// message. The type is lost: a SystemError (core/files/file.h) becomes an Error.
template <class Work> auto within(std::string_view operation, const Work& work) {
  try {
    return work();
  } catch (const Error& error) { throw Error(operation, error.what()); }
}

}  // namespace orrery
