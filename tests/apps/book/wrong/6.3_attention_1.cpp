// Chapter 6. A wrong answer to exercise 6.3: the scores are not divided by sqrt(d_k).
// Expect: FAILED  with 256 columns
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) {
  return matmul(softmax(matmul(Q, K, Trans::b)), V);
}
