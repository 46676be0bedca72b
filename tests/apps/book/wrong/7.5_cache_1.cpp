// Chapter 7. A wrong answer to exercise 7.5: a position does not see itself.
// Expect: FAILED  the second token
#include <cmath>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyCache {
  Tensor K, V;  // [positions so far, d_k] and [positions so far, d_v]

  Tensor extend(const Tensor& q, const Tensor& k, const Tensor& v) {
    const double d_k = static_cast<double>(q.size(1));
    const Tensor earlier_K = K.defined() ? K : k, earlier_V = V.defined() ? V : v;
    const Tensor scores = matmul(q, earlier_K, Trans::b) * (1 / std::sqrt(d_k));
    const Tensor y = matmul(softmax(constant(scores)).value(), earlier_V);
    K = K.defined() ? concat({K, k}, 0) : k.clone();
    V = V.defined() ? concat({V, v}, 0) : v.clone();
    return y;
  }
};
