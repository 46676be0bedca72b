// Chapter 6. Solution of bug 9: the scores of attention.
//
// Q K^T / sqrt(d_k), for Q [B, n, d_k] and K [B, m, d_k].
#include <cmath>

#include "autograd/apply.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct Scores {
  static constexpr std::string_view name = "scores";
  Saved Q, K;
  Tensor forward(const Tensor& queries, const Tensor& keys) {
    Q = queries;
    K = keys;
    return matmul(queries, keys, Trans::b) * (1.0 / std::sqrt(static_cast<double>(queries.size(-1))));
  }
  void backward(const Tensor& dy, Grads& dx) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(Q.get().size(-1)));
    dx.add(0, matmul(dy, K.get()) * scale);
    dx.add(1, matmul(dy, Q.get(), Trans::a) * scale);
  }
};

Variable my_scores(const Variable& Q, const Variable& K) { return apply(Scores{}, Q, K); }
