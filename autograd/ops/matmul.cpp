// Chapter 4. The matrix product, where most of the time goes.
//
// y = a b:  y_ij = sum_k a_ik b_kj, so that  dL/da_ik = sum_j dy_ij b_kj  and  dL/db_kj = sum_i a_ik dy_ij:
//   da = dy b^T        db = a^T dy
// With transposed factors, a^T takes the place of a, or b^T that of b:
//   y = a b^T          da = dy b           db = dy^T a
//   y = a^T b          da = b dy^T         db = a dy
//   y = a^T b^T        da = b^T dy^T       db = dy^T a^T
// Read next: autograd/ops/softmax.cpp
#include "autograd/ops/matmul.h"

#include "autograd/apply.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

struct Matmul {
  static constexpr std::string_view name = "matmul";
  Trans trans;
  Saved a, b;

  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return matmul(left, right, trans);
  }

  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(0)) {
      switch (trans) {
        case Trans::none: dx.into(0).gemm(dy, b, Trans::b); break;
        case Trans::b: dx.into(0).gemm(dy, b, Trans::none); break;
        case Trans::a: dx.into(0).gemm(b, dy, Trans::b); break;
        case Trans::both: dx.into(0).gemm(b, dy, Trans::both); break;
      }
    }
    if (dx.wanted(1)) {
      // If b is shared by all leading axes of a, one product over all rows gives its gradient.
      const bool shared = dx.shape(1).rank() == 2;
      const Tensor rows = shared ? as_rows(a) : a.get(), d = shared ? as_rows(dy) : dy;
      switch (trans) {
        case Trans::none: dx.into(1).gemm(rows, d, Trans::a); break;
        case Trans::b: dx.into(1).gemm(d, rows, Trans::a); break;
        case Trans::a: dx.into(1).gemm(rows, d, Trans::none); break;
        case Trans::both: dx.into(1).gemm(d, rows, Trans::both); break;
      }
    }
  }
};

}  // namespace

Variable matmul(const Variable& a, const Variable& b, Trans trans) { return apply(Matmul{trans, {}, {}}, a, b); }

}  // namespace orrery
