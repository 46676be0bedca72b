// Chapter 8. Solution of exercise 8.1: a sum in fixed chunks.
//
// n numbers are to be added by several threads. part(t, begin, end) is the sum of elements [begin, end), computed by
// thread t. Return the whole sum, with the same bits for any number of threads. Threads must get about equal shares of
// a long sum. No thread is started here: call `part` for one thread after another.
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using Part = std::function<float(i64 t, i64 begin, i64 end)>;

float my_sum(i64 n, i64 threads, const Part& part) {
  constexpr i64 length = 1000;  // of every chunk but the last, however many threads there are
  const i64 chunks = (n + length - 1) / length;
  std::vector<float> sums(static_cast<size_t>(chunks));
  for (i64 t = 0; t < threads; ++t)
    for (i64 c = t; c < chunks; c += threads)
      sums[static_cast<size_t>(c)] = part(t, c * length, std::min(n, (c + 1) * length));
  float total = 0;
  for (const float sum : sums) total += sum;  // in the order of the chunks
  return total;
}
