// Chapter 6. A wrong answer to exercise 6.3: the scores are divided by the root of the values' size, not of the keys'.
// Expect: FAILED  two queries, five keys, d_k = 4, d_v = 3
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) {
  const double d_v = static_cast<double>(V.size(-1));
  return matmul(softmax(matmul(Q, K, Trans::b) * (1 / std::sqrt(d_v))), V);
}
