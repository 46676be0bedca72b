// Chapter 8. Solution of exercise 8.4: the backward of attention in tiles.
//
// One head, without a mask: Q [n, d], K [m, d], V [m, d]. forward is given; it keeps for each query the largest score
// and the sum of e^(score - largest), but not the weights. Write backward, from dO to dQ, dK and dV, `tile` keys at a
// time. No tensor of n x m numbers may be made in backward. slice(x, 0, begin, end) is a view of
// rows, and slice_into(x, rows, 0, begin, false) writes rows.
#include <algorithm>
#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyTiledAttention {
  static constexpr std::string_view name = "my_tiled_attention";
  static constexpr i64 tile = 4;  // keys at a time
  Saved Q, K, V, O, largest, total;

  Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v) {
    const Tensor S = matmul(q, k, Trans::b) * (1 / std::sqrt(static_cast<double>(q.size(1))));
    const Tensor highest = max(S, {-1}, true), E = exp(constant(S - highest)).value(), sums = sum(E, {-1}, true);
    const Tensor result = matmul(E / sums, v);
    Q = q;
    K = k;
    V = v;
    O = result;
    largest = highest;
    total = sums;
    return result;
  }

  void backward(const Tensor& dO, Grads& dx) {
    const Tensor &q = Q, D = sum(dO * O.get(), {-1}, true);  // <dO, O>: the sum of P dP over all keys
    const double factor = 1 / std::sqrt(static_cast<double>(q.size(1)));
    Tensor dQ = zeros(q.shape(), q.dtype()), dK = zeros(K.get().shape(), q.dtype()), dV = dK.clone();
    for (i64 begin = 0; begin < dK.size(0); begin += tile) {
      const i64 end = std::min(begin + tile, dK.size(0));
      const Tensor k = slice(K, 0, begin, end), v = slice(V, 0, begin, end);
      const Tensor S = matmul(q, k, Trans::b) * factor;
      const Tensor P = exp(constant(S - largest.get())).value() / total.get();
      const Tensor scaled_dS = P * (matmul(dO, v, Trans::b) - D) * factor;
      add_in_place(dQ, matmul(scaled_dS, k));
      slice_into(dK, matmul(scaled_dS, q, Trans::a), 0, begin, false);
      slice_into(dV, matmul(P, dO, Trans::a), 0, begin, false);
    }
    dx.add(0, dQ);
    dx.add(1, dK);
    dx.add(2, dV);
  }
};

Variable my_tiled_attention(const Variable& Q, const Variable& K, const Variable& V) {
  return apply(MyTiledAttention{}, Q, K, V);
}
