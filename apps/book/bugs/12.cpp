// Chapter 6. Bug 12: a causal mask.
//
// Position i sees itself and what came before it.
// Its symptoms:  apps/run gradcheck --bug 12
// Grade it:  apps/run exercise bug.12
#include "core/mask.h"

using namespace orrery;

// Which of T positions may see which: an i32 table [T, T], 1 where query i sees key j.
Mask causal_mask(i64 T) {
  Tensor allow = Tensor::empty({T, T}, Dtype::i32);
  for (i64 i = 0; i < T * T; ++i) allow.write<i32>()[i] = i % T <= i / T + 1;
  return Mask::allow(allow);
}
