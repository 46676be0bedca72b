// Chapter 8. The smallest floats, and what flush-to-zero takes away.
// Question: where do numbers end below, and what changes if denormal numbers are taken as zero?
// Answer: halving 1 reaches zero after 150 steps, but the last 23 of them lose bits one by one; these denormal numbers
//   are slow on many CPUs. Flushed to zero, halving ends after 127 steps. Inside the library's loops it always does.
#include <iostream>

#include "core/machine/parallel.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// How often 1 can be halved until it is 0. Volatile: the CPU must compute it, not the compiler.
int halvings() {
  volatile float x = 1;
  int count = 0;
  for (; x != 0; ++count) x = x / 2;
  return count;
}

}  // namespace

int main() {
  const int gradual = halvings();
  int flushed = 0;
  {
    const FlushDenormals scope;
    flushed = halvings();
  }
  const Tensor small = full({1}, 2e-38);
  volatile float tenth = 0.1F;
  const float alone = small.data<float>()[0] * tenth, in_library = scale(small, 0.1).data<float>()[0];
  std::cout << "1 is halved to 0 in " << gradual << " steps, flushed in " << flushed << '\n'
            << "2e-38 * 0.1 = " << alone << ", in the library's loops " << in_library << '\n'
            << "the smallest normal float is " << std::numeric_limits<float>::min()
            << ", 1 + it == 1: " << (1 + std::numeric_limits<float>::min() == 1 ? "yes" : "no") << '\n';
  return gradual == 150 && flushed == 127 && alone > 0 && in_library == 0 && halvings() == 150 ? 0 : 1;
}
