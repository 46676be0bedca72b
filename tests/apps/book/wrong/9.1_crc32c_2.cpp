// Chapter 9. A wrong answer to exercise 9.1: the divisor is not mirrored.
// Expect: FAILED  "123456789"
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

u32 my_crc32c(const std::string& bytes) {
  u32 remainder = ~u32{0};
  for (const char byte : bytes) {
    remainder ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x1EDC6F41 : 0);
  }
  return ~remainder;
}
