// Chapter 3. A check that cannot fail, and what makes it fail: L = <u, y> with a random u in place of the sum of y.
// Question: y = x - mean(x). Does the slope of the sum of y tell a right backward from one that sends nothing back?
// Answer: no: the sum is 0 for every x, so the numeric derivative is 0, and a backward of zeros agrees. A random u
//   tells them apart; a gradient that is zero everywhere counts as a failure, since it proves nothing.
#include <iostream>

#include "autograd/apply.h"
#include "autograd/check/gradcheck.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

struct Centre {
  static constexpr std::string_view name = "centre";
  Tensor forward(const Tensor& x) { return x - mean(x); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy - mean(dy)); }
};
struct SendsNothing : Centre {
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * 0.0); }
};

template <class Operation> Variable centre(const Variable& x) { return apply(Operation{}, x); }

// dL/dx of L = <u, y>.
template <class Operation> Tensor gradient(const Tensor& u) {
  const Variable x = parameter(Tensor::of<double>({3}, {1, 2, 6}));
  backward(centre<Operation>(x), u);
  return x.gradient();
}

std::string_view verdict(const GradcheckReport& report) { return report ? "ok" : name_of(report.failed_check()); }

}  // namespace

int main() {
  const Tensor ones = full({3}, 1, f64), u = Tensor::of<double>({3}, {3, 0, 0});
  std::cout << "u = (1, 1, 1), a plain sum:\n  right          " << gradient<Centre>(ones) << "\n  sends nothing  "
            << gradient<SendsNothing>(ones) << "\nu = (3, 0, 0):\n  right          " << gradient<Centre>(u)
            << "\n  sends nothing  " << gradient<SendsNothing>(u) << '\n';

  const std::vector<Tensor> x{Tensor::of<double>({3}, {1, 2, 6})};
  const auto plain_sum = [](const Variable& in) { return sum(centre<SendsNothing>(in)); };
  const GradcheckReport right = gradcheck(&centre<Centre>, x), wrong = gradcheck(&centre<SendsNothing>, x),
                        of_sum = gradcheck(plain_sum, x);
  std::cout << "gradcheck of the right backward: " << verdict(right)
            << "\ngradcheck of the one that sends nothing: " << verdict(wrong)
            << "\ngradcheck of its plain sum: " << verdict(of_sum) << '\n';
  const bool alike = same_bits(gradient<Centre>(ones) * 0.0, gradient<SendsNothing>(ones));
  return alike && right && wrong.failed_check() == GradientCheck::coordinate &&
                 of_sum.failed_check() == GradientCheck::vacuous
             ? 0
             : 1;
}
