// Chapter 6. A wrong answer to exercise 6.3: softmax runs over the queries.
// Expect: FAILED  where all values are equal
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) {
  const double d_k = static_cast<double>(Q.size(-1));
  const Variable scores = matmul(K, Q, Trans::b) * (1 / std::sqrt(d_k));
  return matmul(permute(softmax(scores), {1, 0}), V);
}
