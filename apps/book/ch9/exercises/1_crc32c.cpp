// Chapter 9. Exercise 9.1: CRC32C by hand.
//
// The appendix divides by a polynomial of degree 3, CRC32C by one of degree 32, with three rules of its own. The
// lowest bit of a byte comes first: so the divisor is written mirrored, 0x82F63B78, without its highest power, and in
// each step the remainder moves to the right by one bit. The remainder begins as 32 ones. At the end, each of its bits
// is flipped.
// Grade it:  apps/run exercise 9.1
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

u32 my_crc32c(const std::string& bytes) {
  u32 remainder = 0;
  for (const char byte : bytes) remainder += static_cast<unsigned char>(byte);  // YOUR CODE: a sum finds little
  return remainder;
}
