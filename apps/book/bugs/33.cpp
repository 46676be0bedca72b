// Chapter 7. Bug 33: attention with a cache, one token at a time.
//
// `extend` is given q [1, d_k], k [1, d_k] and v [1, d_v] of the next position, keeps k and v, and returns what this
// position gets from causal self-attention [1, d_v].
// Its symptoms:  apps/run gradcheck --bug 33
// Grade it:  apps/run exercise bug.33
#include <cmath>
#include <vector>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyCache {
  std::vector<Tensor> K, V;  // a row for each position so far

  Tensor attended(const Tensor& q) const {
    const Tensor scores = matmul(q, concat(K, 0), Trans::b) * (1 / std::sqrt(static_cast<double>(q.size(1))));
    return matmul(softmax(constant(scores)).value(), concat(V, 0));
  }

  Tensor extend(const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor y = K.empty() ? v : attended(q);
    K.push_back(k);
    V.push_back(v);
    return y;
  }
};
