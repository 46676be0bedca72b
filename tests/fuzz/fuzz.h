// Chapter 9. What all fuzz targets share: input in pieces, and the one exception that is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "core/error.h"

namespace orrery::fuzz {

/// Calls `work`. An Error is the right answer to wrong input. Any other exception ends the program, as does a fault.
template <class Work> bool accepted(const Work& work) {
  try {
    work();
    return true;
  } catch (const Error&) { return false; }
}

/// Ends the program, with the rule that was broken, unless `right`.
inline void expect(bool right, std::string_view rule) {
  if (right) return;
  std::cerr << "broken: " << rule << std::endl;
  std::abort();
}

/// Ends the program, with the rule that was broken, unless `holds()` is true; an Error breaks the rule, too.
template <class Holds> void expect_accepted(const Holds& holds, std::string_view rule) {
  bool right = false;
  expect(accepted([&] { right = holds(); }) && right, rule);
}

/// The first byte of the input chooses what is tried, the rest is text for it.
struct Input {
  Input(const std::uint8_t* data, std::size_t size)
      : choice(size > 0 ? data[0] : 0),
        text(reinterpret_cast<const char*>(data) + (size > 0), size > 0 ? size - 1 : 0) {}
  unsigned choice;
  std::string text;

  /// The text before the first zero byte, and the text behind it.
  std::pair<std::string, std::string> halves() const {
    const std::size_t zero = std::min(text.find('\0'), text.size());
    return {text.substr(0, zero), text.substr(std::min(zero + 1, text.size()))};
  }
};

}  // namespace orrery::fuzz
