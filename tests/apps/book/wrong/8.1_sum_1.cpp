// Chapter 8. A wrong answer to exercise 8.1: chunks are fixed, but each thread adds up its own.
// Expect: FAILED  10,000 elements on 2 threads, beside one thread
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using Part = std::function<float(i64 t, i64 begin, i64 end)>;

float my_sum(i64 n, i64 threads, const Part& part) {
  constexpr i64 length = 1000;
  float total = 0;
  for (i64 t = 0; t < threads; ++t) {
    float of_thread = 0;
    for (i64 begin = t * length; begin < n; begin += threads * length)
      of_thread += part(t, begin, std::min(n, begin + length));
    total += of_thread;
  }
  return total;
}
