// Chapter 8. Exercise 8.1: a sum in fixed chunks.
//
// n numbers are to be added by several threads. part(t, begin, end) is the sum of elements [begin, end), computed by
// thread t. Return the whole sum, with the same bits for any number of threads. Threads must get about equal shares of
// a long sum. No thread is started here: call `part` for one thread after another.
// Grade it:  apps/run exercise 8.1
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using Part = std::function<float(i64 t, i64 begin, i64 end)>;

float my_sum(i64 n, i64 threads, const Part& part) {
  return part(0, 0, n / threads);  // YOUR CODE: one share alone
}
