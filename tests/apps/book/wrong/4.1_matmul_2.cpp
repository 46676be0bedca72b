// Chapter 4. A wrong answer to exercise 4.1: the factors of db are swapped.
// Expect: [0, 1] is 2, should be 1
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
    dx.add(0, matmul(dy, b, Trans::b));
    dx.add(1, matmul(dy, a, Trans::a));
  }
};

Variable my_matmul(const Variable& a, const Variable& b) { return apply(MyMatmul{}, a, b); }
