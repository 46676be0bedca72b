// Chapter 4. The four derivatives that matter, worked out by hand and compared with backward.
// Question: what are the gradients of matmul, softmax, layer norm and cross entropy, and why must a check of softmax
//   not end in a plain sum?
// Answer: y = a b            da = dy b^T,  db = a^T dy
//         softmax            dx = y (dy - <dy, y>): 0 if all dy are equal, so a plain sum hides errors
//         layer norm         dx = (dy - mean(dy) - x^ mean(dy x^)) / deviation,  x^ = (x - mean(x)) / deviation
//         cross entropy      dx = (softmax(x) - onehot(target)) / rows
// Read next: nn/module.h
#include <cmath>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }

bool compare(const char* what, const Tensor& by_hand, const Tensor& from_backward) {
  const double difference = largest(by_hand - from_backward);
  std::cout << what << "  largest difference " << difference << '\n';
  return difference < 1e-12;
}

}  // namespace

int main() {
  Rng rng(4);
  const auto draw = [&](const Shape& shape) { return parameter(randn(shape, rng, f64)); };
  bool right = true;

  const Variable a = draw({2, 3}), b = draw({3, 5});
  const Tensor dy = randn({2, 5}, rng, f64);
  backward(matmul(a, b), dy);
  right &= compare("matmul, da       ", matmul(dy, b.value(), Trans::b), a.gradient());
  right &= compare("matmul, db       ", matmul(a.value(), dy, Trans::a), b.gradient());

  Variable x = draw({2, 5});
  const Variable y = softmax(x);
  backward(y, dy);
  right &= compare("softmax, dx      ", y.value() * (dy - sum(dy * y.value(), {-1}, true)), x.gradient());
  x.clear_gradient();
  backward(sum(softmax(x)));
  std::cout << "softmax, a sum     largest gradient   " << largest(x.gradient()) << '\n';
  right &= largest(x.gradient()) < 1e-15;

  x.clear_gradient();
  backward(layer_norm(x, {}, {}), dy);
  const Tensor centred = x.value() - mean(x.value(), {-1}, true), variance = mean(centred * centred, {-1}, true);
  const Tensor deviation = sqrt(constant(variance + full({2, 1}, 1e-5, f64))).value(), x_hat = centred / deviation;
  const Tensor by_hand = (dy - mean(dy, {-1}, true) - x_hat * mean(dy * x_hat, {-1}, true)) / deviation;
  right &= compare("layer norm, dx   ", by_hand, x.gradient());

  x.clear_gradient();
  backward(cross_entropy(x, Tensor::of<i32>({2}, {3, 0})));
  const Tensor onehot = Tensor::of<double>({2, 5}, {0, 0, 0, 1, 0, 1, 0, 0, 0, 0});
  right &= compare("cross entropy, dx", (y.value() - onehot) * 0.5, x.gradient());
  return right ? 0 : 1;
}
