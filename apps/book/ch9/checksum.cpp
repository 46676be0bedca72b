// Chapter 9. A checksum as the remainder of a division, small enough for paper.
// Question: why does a remainder find every flipped bit, and every burst of damage that is short enough?
// Answer: damage adds an error to the message. The remainder changes unless the divisor divides the error, and a
//   divisor of degree 3 with a last bit of 1 divides no error whose bits all lie within 3 places.
#include <iostream>
#include <string>

namespace {

constexpr unsigned divisor = 0b1011;  // x^3 + x + 1
constexpr int degree = 3, message_bits = 8;

std::string bits(unsigned x, int count) {
  std::string text;
  for (int i = count; i-- > 0;) text += (x >> i & 1) != 0 ? '1' : '0';
  return text;
}

// The message, followed by three zeros, is divided: where a bit is left, the divisor is subtracted, which is xor.
unsigned remainder_of(unsigned message, bool show = false) {
  unsigned rest = message << degree;
  for (int i = message_bits - 1; i >= 0; --i) {
    if ((rest >> (i + degree) & 1) == 0) continue;
    if (show) {
      std::cout << "  " << bits(rest, message_bits + degree) << '\n'
                << "  " << std::string(static_cast<size_t>(message_bits - 1 - i), ' ') << bits(divisor, degree + 1)
                << '\n';
    }
    rest ^= divisor << i;
  }
  if (show) std::cout << "  " << bits(rest, message_bits + degree) << '\n';
  return rest;
}

}  // namespace

int main() {
  constexpr unsigned message = 0b11010011;
  std::cout << "divide " << bits(message, message_bits) << " by " << bits(divisor, degree + 1) << ":\n";
  const unsigned checksum = remainder_of(message, true);
  std::cout << "checksum " << bits(checksum, degree) << '\n';

  int flips = 0, flips_found = 0, bursts = 0, bursts_found = 0, all_found = 0;
  for (unsigned error = 1; error < 1u << message_bits; ++error) {
    const bool found = remainder_of(message ^ error) != checksum;
    unsigned burst = error;  // without the zeros behind its last bit
    while ((burst & 1) == 0) burst >>= 1;
    const bool one_bit = burst == 1, few_bits = burst < 1u << degree;
    flips += one_bit;
    flips_found += one_bit && found;
    bursts += few_bits;
    bursts_found += few_bits && found;
    all_found += found;
  }
  std::cout << "single bits found: " << flips_found << " of " << flips
            << "\nbursts of up to 3 bits found: " << bursts_found << " of " << bursts
            << "\nall errors found: " << all_found << " of " << (1 << message_bits) - 1 << '\n';
  return flips_found == flips && bursts_found == bursts ? 0 : 1;
}
