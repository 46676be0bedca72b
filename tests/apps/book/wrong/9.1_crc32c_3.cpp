// Chapter 9. A wrong answer to exercise 9.1: bytes above 127 are negative.
// Expect: FAILED  32 bytes of ones
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

u32 my_crc32c(const std::string& bytes) {
  u32 remainder = ~u32{0};
  for (const char byte : bytes) {
    remainder ^= static_cast<u32>(byte);
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~remainder;
}
