// Chapter 6. A wrong answer to exercise 6.3: the scores are divided by d_k.
// Expect: [0, 0] is 1.15
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) {
  const double d_k = static_cast<double>(Q.size(-1));
  return matmul(softmax(matmul(Q, K, Trans::b) * (1 / d_k)), V);
}
