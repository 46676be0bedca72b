// Chapter 6. Solution of bug 12: a causal mask.
//
// Position i sees itself and what came before it.
#include "core/mask.h"

using namespace orrery;

// Which of T positions may see which: an i32 table [T, T], 1 where query i sees key j.
Mask causal_mask(i64 T) {
  Tensor allow = Tensor::empty({T, T}, Dtype::i32);
  for (i64 i = 0; i < T * T; ++i) allow.write<i32>()[i] = i % T <= i / T;
  return Mask::allow(allow);
}
