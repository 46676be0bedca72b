// Chapter 1. A wrong answer to exercise 1.2: the larger size, whatever the two are.
// Expect: FAILED  [2, 3] and [2] do not fit
#include <algorithm>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

std::vector<i64> my_broadcast(const std::vector<i64>& a, const std::vector<i64>& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<i64> result(rank, 1);
  for (size_t back = 1; back <= rank; ++back) {
    i64& size = result[rank - back];
    if (back <= a.size()) size = std::max(size, a[a.size() - back]);
    if (back <= b.size()) size = std::max(size, b[b.size() - back]);
  }
  return result;
}
