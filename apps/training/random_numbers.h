// Chapter 9. The random numbers of a training, by purpose, so that drawing more for one changes no other.
#pragma once

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

}  // namespace orrery
