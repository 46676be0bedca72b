// Chapter 4. The matrix product and its two gradients in whole numbers.
// Question: y = a b, and dy = dL/dy is known. What are da and db?
// Answer: da = dy b^T and db = a^T dy. When one entry of a grows by 1, L grows by the entry of da in the same place.
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

int main() {
  const Variable a = parameter(Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Variable b = parameter(Tensor::of<double>({3, 2}, {1, 0, 2, 1, 0, 3}));
  const Tensor dy = Tensor::of<double>({2, 2}, {1, -1, 2, 0});

  const Variable y = matmul(a, b);
  const double L = dot(dy, y.value());
  std::cout << "y = a b\n" << y.value() << "\nL = <dy, y> = " << L << "\n\n";

  backward(y, dy);
  const Tensor da = matmul(dy, b.value(), Trans::b), db = matmul(a.value(), dy, Trans::a);
  std::cout << "da = dy b^T\n" << da << "\nbackward says\n" << a.gradient() << "\n\n";
  std::cout << "db = a^T dy\n" << db << "\nbackward says\n" << b.gradient() << "\n\n";

  Tensor nudged = a.value().clone();
  nudged(1, 1) = nudged(1, 1) + 1;
  const double change = dot(dy, matmul(nudged, b.value())) - L;
  std::cout << "a_11 + 1 changes L by " << change << ", and da_11 is " << da(1, 1) << '\n';
  return same_bits(da, a.gradient()) && same_bits(db, b.gradient()) && change == da(1, 1) ? 0 : 1;
}
