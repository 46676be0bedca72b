// Chapter 9. The random numbers of a training, by purpose, so that drawing more for one changes no other.
#pragma once

#include <utility>
#include <vector>

#include "core/random.h"

namespace orrery {

/// What random numbers are drawn for: the initial weights, the batches to train on, what is held out to judge the model
/// by, and what a program draws besides (the sample of `lm`, the evaluations of `toy`). The values decide which numbers
/// are drawn, and so every result: new purposes get new values.
enum class Purpose : u64 { weights = 0, training = 1, held_out = 2, extra = 3 };

/// Random numbers of a seed for a purpose. Those of different purposes do not overlap as long as each draws fewer
/// than 2^40.
inline Rng random_numbers(i64 seed, Purpose purpose) {
  constexpr u64 stretch = u64{1} << 40;
  return Rng(static_cast<u64>(seed), static_cast<u64>(purpose) * stretch);
}

/// Puts numbers into a random order, each order being equally likely.
inline void permute_randomly(std::vector<i64>& numbers, Rng& rng) {
  for (size_t i = numbers.size(); i > 1; --i)  // Fisher and Yates: place i gets one of those not yet placed
    std::swap(numbers[i - 1], numbers[static_cast<size_t>(rng.integer(0, static_cast<i64>(i)))]);
}

}  // namespace orrery
