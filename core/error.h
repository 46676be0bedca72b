// Chapter 1. The one exception type, and the check that raises it.
//
// Every message names the operation and the rule that was broken, so that its reader knows what to change:
//   matmul: inner sizes differ (64 != 128)
// The tape (autograd/apply.h) appends one line per input: its shape and where it came from.
// Serves: core/tensor.h
#pragma once

#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery {

/// A broken rule: `what()` is "operation: rule" followed by optional detail lines.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view rule, std::string_view details = "");

  /// The rule alone, for code that catches the error and adds details.
  const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

/// One part of a message: any value that can be written with `<<`. It refers to the value, and writes it only if
/// needed.
class MessagePart {
 public:
  template <class T>
  MessagePart(const T& value)
      : value_(&value), write_([](std::ostream& out, const void* part) { out << *static_cast<const T*>(part); }) {}
  MessagePart(const char* text);  // one type for literals of every length

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

template <class... Parts>
[[noreturn]] void fail(std::string_view operation, const Parts&... parts) {
  fail_with(operation, {parts...});
}

/// Throws like `fail` unless `ok`; the parts are only written when the check fails.
template <class... Parts>
void check(bool ok, std::string_view operation, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail_with(operation, {parts...});
}

}  // namespace orrery
