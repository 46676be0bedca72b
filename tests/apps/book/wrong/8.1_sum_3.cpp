// Chapter 8. A wrong answer to exercise 8.1: what does not fill a chunk is left out.
// Expect: FAILED  sums of no, of one and of five elements
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using Part = std::function<float(i64 t, i64 begin, i64 end)>;

float my_sum(i64 n, i64 threads, const Part& part) {
  constexpr i64 length = 1000;
  float total = 0;
  for (i64 c = 0; c < n / length; ++c) total += part(c % threads, c * length, (c + 1) * length);
  return total;
}
