// Chapter 4. Exercise 4.1: the matrix product's backward.
//
// y = a b, with a [m, n] and b [n, p]. The forward is given. Write the backward: from dy [m, p] to da [m, n] and
// db [n, p]. matmul(x, y, Trans::a) is x^T y, and matmul(x, y, Trans::b) is x y^T.
// Grade it:  apps/run exercise 4.1
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyMatmul {
  static constexpr std::string_view name = "my_matmul";
  Saved a, b;

  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return matmul(left, right);
  }

  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, zeros(a.get().shape(), dy.dtype()));  // YOUR CODE: da
    dx.add(1, zeros(b.get().shape(), dy.dtype()));  // YOUR CODE: db
  }
};

Variable my_matmul(const Variable& a, const Variable& b) { return apply(MyMatmul{}, a, b); }
