// Chapter 3. Activation functions: values, and slopes as backward computes them.
// Question: how much of a gradient does each activation let through, at -4, -1, 0, 1 and 4?
// Answer: sigmoid and tanh next to nothing far from 0; relu all or nothing; gelu and silu nearly all where x is
//   large, and a small part, of either sign, where x is negative.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

struct Activation {
  const char* name;
  Variable (*f)(const Variable&);
};

Tensor slopes(const Activation& activation, const Tensor& x) {
  const Variable in = parameter(x.clone());
  backward(activation.f(in), full(x.shape(), 1, f64));
  return in.gradient();
}

void print_row(const std::string& name, const Tensor& numbers) {
  std::cout << std::left << std::setw(14) << name << std::right;
  for (i64 i = 0; i < numbers.count(); ++i) std::cout << std::setw(9) << numbers.at(i) + 0.0;
  std::cout << '\n';
}

}  // namespace

int main() {
  const Tensor x = Tensor::of<double>({5}, {-4, -1, 0, 1, 4});
  const std::vector<Activation> all{
      {"relu", relu}, {"gelu", gelu}, {"silu", silu}, {"sigmoid", sigmoid}, {"tanh", tanh}};
  std::cout << std::fixed << std::setprecision(4);
  print_row("value at", x);
  for (const Activation& activation : all) print_row(activation.name, activation.f(constant(x)).value());
  print_row("slope at", x);
  for (const Activation& activation : all) print_row(activation.name, slopes(activation, x));
  return slopes(all[0], x)(4) == 1 && slopes(all[3], x)(2) == 0.25 && slopes(all[4], x)(4) < 0.01 ? 0 : 1;
}
