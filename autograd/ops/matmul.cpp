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
#include "autograd/ops/layout.h"
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

// x with its leading axes repeated to `leading`.
Variable repeated(const Variable& x, const Shape& leading) {
  const Shape shape = leading.plus(x.size(-2)).plus(x.size(-1));
  return x.shape() == shape ? x : broadcast_to(x, shape);
}

// A vector as a row or a column; then its axis is dropped.
Variable with_vector(const Variable& a, const Variable& b) {
  const bool row = a.shape().rank() == 1, column = b.shape().rank() == 1;
  const Variable y = matmul(row ? reshape(a, {1, a.size(0)}) : a, column ? reshape(b, {b.size(0), 1}) : b);
  Shape shape = y.shape().without_last(2);
  if (!row) shape = shape.plus(y.size(-2));
  return reshape(y, column ? shape : shape.plus(y.size(-1)));
}

}  // namespace

Variable matmul(const Variable& a, const Variable& b, Trans trans) {
  const int axes_a = a.shape().rank(), axes_b = b.shape().rank();
  if (trans == Trans::none && std::min(axes_a, axes_b) > 0 && (axes_a == 1 || axes_b == 1)) return with_vector(a, b);
  const bool b_is_shared = axes_b == 2 && !kernels::transposes_a(trans);
  if (std::min(axes_a, axes_b) < 2 || b_is_shared) return apply(Matmul{trans, {}, {}}, a, b);
  const Shape leading = tape::explained("matmul", std::array{&a, &b}, [&] {
    return broadcast(a.shape().without_last(2), b.shape().without_last(2), "matmul");
  });
  return apply(Matmul{trans, {}, {}}, repeated(a, leading), repeated(b, leading));
}

}  // namespace orrery
