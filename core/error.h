// Chapter 1. The one exception type, and the check that raises it.
//
// Every message names the operation and the rule that was broken, so that the reader of the message knows what to
// change:
//   matmul: inner sizes differ (64 != 128)
// The tape (autograd/apply.h) appends one line per input: its shape and where it came from.
// Read next: core/dtype.h
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery {

/// A broken rule: `what()` is "operation: rule" followed by optional detail lines.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view rule, std::string_view details = "")
      : std::runtime_error(std::string(operation) + ": " + std::string(rule) + std::string(details)), rule_(rule) {}

  /// The rule alone, for whoever catches the error to say more about it.
  const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

/// Throws Error{operation, parts written one after another}.
template <class... Parts>
[[noreturn]] void fail(std::string_view operation, const Parts&... parts) {
  std::ostringstream rule;
  (rule << ... << parts);
  throw Error(operation, rule.str());
}

/// Throws like `fail` unless `ok`; the parts are only written when the check fails.
template <class... Parts>
void check(bool ok, std::string_view operation, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(operation, parts...);
}

}  // namespace orrery
