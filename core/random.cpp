// Chapter 8. The sequential generator on top of Philox.
//
// Read next: core/hash.h
#include "core/random.h"

#include <cmath>
#include <numbers>

namespace orrery {

u64 Rng::next() {
  // The last counter word keeps these draws apart from dropout's, whose last word counts the draws of a pass.
  constexpr u32 sequence = 0xFFFFFFFF;
  const u64 block = position_ / 2;
  const PhiloxBlock words = philox4x32({static_cast<u32>(block), static_cast<u32>(block >> 32), 0, sequence},
                                       {static_cast<u32>(seed_), static_cast<u32>(seed_ >> 32)});
  const size_t first = 2 * (position_++ % 2);
  return words[first] | u64{words[first + 1]} << 32;
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

i64 Rng::integer(i64 low, i64 high) {
  check(low < high, "integer", "needs low < high, got ", low, " and ", high);
  const u64 range = static_cast<u64>(high) - static_cast<u64>(low);
  // Values at the incomplete end of 2^64 would favour small results; draw again there.
  const u64 limit = range * (~u64{0} / range);
  u64 value = next();
  while (value >= limit) value = next();
  return static_cast<i64>(static_cast<u64>(low) + value % range);  // unsigned: the sum may pass 2^63 on its way
}

}  // namespace orrery
