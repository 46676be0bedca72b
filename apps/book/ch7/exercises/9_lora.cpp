// Chapter 7. Exercise 7.9: LoRA, and how it is merged.
//
// W [out, in] has been trained and stays as it is. Beside it two narrow matrices learn, A [r, in] and B [out, r]:
//
// y = x W^T + (alpha / r) x A^T B^T, with x [n, in] and y [n, out]
//
// alpha is a fixed number (Hu et al. 2021, section 4.1). At first y must be x W^T, and yet a step must be able to
// change it. When A and B have learned, one matrix does the work of all three: `merged` makes it, and leaves W as it
// is.
//
// parameter(tensor) is a Variable that learns, constant(tensor) one that does not; randn({rows, columns}, rng, f64) is
// random. matmul(a, b, Trans::b) is a b^T, for Variables and for Tensors. A.value() is the Tensor of A.
// Grade it:  apps/run exercise 7.9
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyLora {
  Tensor W;
  double factor;  // alpha / r
  Variable A, B;

  MyLora(const Tensor& weight, i64 r, double alpha, Rng& rng) : W(weight), factor(alpha / static_cast<double>(r)) {
    A = parameter(zeros({r, W.size(1)}, f64));  // YOUR CODE: nothing can learn from here
    B = parameter(zeros({W.size(0), r}, f64));
  }
  Variable operator()(const Variable& x) const {
    return matmul(x, constant(W), Trans::b);  // YOUR CODE: what of A and B?
  }
  Tensor merged() const {
    return W;  // YOUR CODE
  }
};
