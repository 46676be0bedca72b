// Chapter 6. Exercise 6.3: several heads.
//
// Write multi-head attention. Queries come from x [n, d_model], keys and values from memory [m, d_model]; in
// self-attention both are the same. W.Q(x) is the product x W^Q for all heads together; W.K, W.V and W.O multiply by
// the other three matrices, each [d_model, d_model]. Of h heads, head i has the columns from i d to (i + 1) d - 1 of Q,
// K and V, where d = d_model / h. The outputs of the heads stand side by side in this order, [n, d_model], and W^O
// mixes them.
//
// `attend` is the attention of one head, and may be yours: attend(Q_i, K_i, V_i, allowed), where `allowed` is the mask,
// i32 [n, m], the same for every head. slice(x, 1, begin, end) cuts columns out of x; concat(parts, 1) puts a
// std::vector<Variable> side by side.
// Grade it:  apps/run exercise 6.3
#include <functional>
#include <vector>

#include "autograd/ops.h"

using namespace orrery;

using Attend = std::function<Variable(const Variable& Q, const Variable& K, const Variable& V, const Tensor& allowed)>;

struct Projections {
  std::function<Variable(const Variable&)> Q, K, V, O;
};

Variable my_multi_head(const Variable& x, const Variable& memory, const Projections& W, i64 heads,
                       const Tensor& allowed, const Attend& attend) {
  return attend(x, memory, memory, allowed);  // YOUR CODE: one head, and no matrix
}
