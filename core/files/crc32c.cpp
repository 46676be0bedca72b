// Chapter 9. CRC32C by tables, and by the CPU's own instruction.
//
// Bits are taken lowest first, so the polynomial appears mirrored: 0x82F63B78. tables[k][b] is what byte b contributes
// when k more bytes follow it; eight look-ups then replace 64 steps of the division.
#include "core/files/crc32c.h"

#include <array>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace orrery {
namespace {

using Tables = std::array<std::array<u32, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (u32 byte = 0; byte < 256; ++byte) {
    u32 remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82F63B78 : 0);
    tables[0][byte] = remainder;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const u32 shorter = tables[k - 1][byte];
      tables[k][byte] = (shorter >> 8) ^ tables[0][shorter & 0xFF];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

#if defined(__SSE4_2__)
#define ORRERY_CRC32C_INSTRUCTION 1
u32 step8(u32 crc, u64 bytes) { return static_cast<u32>(_mm_crc32_u64(crc, bytes)); }
u32 step1(u32 crc, u8 byte) { return _mm_crc32_u8(crc, byte); }
#elif defined(__ARM_FEATURE_CRC32)
#define ORRERY_CRC32C_INSTRUCTION 1
u32 step8(u32 crc, u64 bytes) { return __crc32cd(crc, bytes); }
u32 step1(u32 crc, u8 byte) { return __crc32cb(crc, byte); }
#endif

}  // namespace

u32 crc32c_portable(std::span<const std::byte> bytes, u32 before) {
  u32 crc = ~before;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    u32 next = 0;
    for (size_t k = 0; k < 8; ++k) {
      const u32 remainder = k < 4 ? crc >> (8 * k) : 0;
      next ^= tables[7 - k][(std::to_integer<u32>(bytes[i + k]) ^ remainder) & 0xFF];
    }
    crc = next;
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ tables[0][(std::to_integer<u32>(bytes[i]) ^ crc) & 0xFF];
  return ~crc;
}

#if defined(ORRERY_CRC32C_INSTRUCTION)
u32 crc32c(std::span<const std::byte> bytes, u32 before) {
  u32 crc = ~before;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    u64 word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    crc = step8(crc, word);
  }
  for (; i < bytes.size(); ++i) crc = step1(crc, std::to_integer<u8>(bytes[i]));
  return ~crc;
}
#else
u32 crc32c(std::span<const std::byte> bytes, u32 before) { return crc32c_portable(bytes, before); }
#endif

std::string hex_digits(u32 checksum) {
  std::string digits(8, '0');
  for (size_t i = 8; i-- > 0; checksum >>= 4) digits[i] = "0123456789abcdef"[checksum & 0xF];
  return digits;
}

}  // namespace orrery
