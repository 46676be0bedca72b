// Chapter 9. CRC32C: 32 bits that change when a file is damaged.
//
// The bytes are read as one long polynomial over {0, 1}; the checksum is its remainder after division by Castagnoli's
// polynomial 0x1EDC6F41 (RFC 3720). Every flipped bit, and every burst of up to 32 damaged bits, changes it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/dtype.h"

namespace orrery {

/// The checksum of `bytes`. For a text in pieces, pass the checksum of all earlier pieces as `before`.
/// Uses the CPU's instruction if there is one.
u32 crc32c(std::span<const std::byte> bytes, u32 before = 0);

/// The same in plain C++, eight bytes at a time by tables.
u32 crc32c_portable(std::span<const std::byte> bytes, u32 before = 0);

/// A checksum as it stands in a file: eight hexadecimal digits.
std::string hex_digits(u32 checksum);

}  // namespace orrery
