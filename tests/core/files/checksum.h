// Chapter 9. A checksum as it stands in a file of tensors: for files that a test, or a fuzz target, makes or changes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/files/crc32c.h"

namespace orrery {

/// The CRC32C of these bytes as eight hexadecimal digits.
inline std::string checksum_digits(std::string_view bytes) {
  u32 value = crc32c(std::as_bytes(std::span(bytes)));
  std::string digits(8, '0');
  for (size_t i = digits.size(); i-- > 0; value >>= 4) digits[i] = "0123456789abcdef"[value & 0xF];
  return digits;
}

}  // namespace orrery
