// Chapter 3. Activation functions: values, and slopes as backward computes them.
// Question: how much of a gradient does each activation let through, at -4, -1, 0, 1 and 4?
// Answer: sigmoid and tanh next to nothing far from 0; relu all or nothing; gelu and silu nearly all where x is
//   large, and a little below 0.
// Serves: apps/book/ch3/my_op.cpp
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// Prints f and its slope at each x, and returns the slopes.
Tensor print_row(const char* name, Variable (*f)(const Variable&), const Tensor& x) {
  const Variable in = parameter(x.clone()), y = f(in);
  backward(y, full(x.shape(), 1, f64));
  for (const auto& [what, numbers] : {std::pair{"value", y.value()}, {"slope", in.gradient()}}) {
    std::cout << std::left << std::setw(9) << name << what << std::right;
    for (i64 i = 0; i < x.count(); ++i) std::cout << std::setw(9) << numbers.at(i) + 0.0;
    std::cout << '\n';
  }
  return in.gradient();
}

}  // namespace

int main() {
  const Tensor x = Tensor::of<double>({5}, {-4, -1, 0, 1, 4});
  std::cout << "x             ";
  for (i64 i = 0; i < x.count(); ++i) std::cout << std::setw(9) << x.at(i);
  std::cout << '\n' << std::fixed << std::setprecision(4);
  const Tensor through_relu = print_row("relu", relu, x);
  print_row("gelu", gelu, x);
  print_row("silu", silu, x);
  const Tensor through_sigmoid = print_row("sigmoid", sigmoid, x);
  const Tensor through_tanh = print_row("tanh", tanh, x);
  return through_relu(4) == 1 && through_sigmoid(2) == 0.25 && through_tanh(4) < 0.01 ? 0 : 1;
}
