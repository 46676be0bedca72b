// Chapter 5. Adam by hand, with and without its two corrections.
// Question: what do the divisions by 1 - beta^t correct, and how wrong are the first steps without them?
// Answer: m and v begin at 0 and are too small by exactly these factors. Uncorrected, the first step is shorter than
//   the learning rate with the paper's beta2, and three times as long with the usual one; both are wrong for long.
//   Corrected, the first step is as long as the rate, and steps get short where the gradient changes its sign.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/book/measured.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

constexpr double beta1 = 0.9, beta2 = 0.98, eps = 1e-9, rate = 0.1;

// With a gradient that never changes, m_hat / sqrt(v_hat) is its sign: this is how long an uncorrected step would be.
double uncorrected(i64 t, double second_beta) {
  const double steps = static_cast<double>(t);
  return (1 - std::pow(beta1, steps)) / std::sqrt(1 - std::pow(second_beta, steps));
}

// The length of step t in learning rates where the gradient is 1, -1, 1, -1, ...; v_hat is then 1.
double with_changing_sign(i64 t) {
  double m = 0;
  for (i64 i = 0; i < t; ++i) m = beta1 * m + (1 - beta1) * (i % 2 == 0 ? 1 : -1);
  return std::fabs(m) / (1 - std::pow(beta1, static_cast<double>(t)));
}

}  // namespace

int main() {
  std::cout << "beta1 = " << beta1 << ", beta2 = " << beta2 << ", eps = " << eps << ", learning rate " << rate << '\n';
  std::cout << std::setprecision(4) << " t      g   m         v         m_hat     v_hat     p by hand  p by Adam\n";
  const Variable parameter_of_adam = parameter(Tensor::of<double>({1}, {1}), "p");
  optim::Adam adam({parameter_of_adam}, {.beta1 = beta1, .beta2 = beta2, .eps = eps});
  double p = 1, m = 0, v = 0;
  bool right = true;
  int t = 0;
  for (const double g : {0.5, 0.5, -0.25, 1.0}) {
    backward(sum(parameter_of_adam * g));  // dL/dp = g
    adam.step(rate);

    ++t;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    p -= rate * m_hat / (std::sqrt(v_hat) + eps);

    const double other = parameter_of_adam.value().at(0);
    std::cout << std::right << std::setw(2) << t << std::setw(7) << g << "   " << std::left << std::setw(10) << m
              << std::setw(10) << v << std::setw(10) << m_hat << std::setw(10) << v_hat << std::setw(11) << p << other
              << '\n';
    right &= std::fabs(p - other) < 1e-12;
  }

  std::cout
      << "\nlength of an uncorrected step under a constant gradient, in learning rates\n     t  beta2 0.98  0.999\n";
  for (const i64 t : {1, 10, 1000}) {
    std::cout << std::right << std::setw(6) << t << "  " << std::left << std::setw(12) << uncorrected(t, 0.98)
              << uncorrected(t, 0.999) << '\n';
  }
  std::cout << "\nlength of a step where the gradient changes its sign at every step, in learning rates\n";
  for (const i64 t : {1, 2, 1000})
    std::cout << std::right << std::setw(6) << t << "  " << with_changing_sign(t) << '\n';
  right &= with_changing_sign(1) == 1 && std::fabs(with_changing_sign(1000) - (1 - beta1) / (1 + beta1)) < 1e-12;
  right &= uncorrected(1, 0.98) < 1 && uncorrected(1, 0.999) > 3 && uncorrected(1000, 0.999) > 1.2;

  constexpr i64 count = 4'000'000, bytes = 7 * count * i64{sizeof(float)};  // reads p, g, m, v; writes p, m, v
  const Variable many = parameter(zeros({count}), "many");
  optim::Adam large({many});
  const double ms = book::shortest_ms([&] { large.step(rate); }, [&] { backward(many, full({count}, 1.0)); });
  std::cout << "measured: a step of Adam for " << count << " numbers moves " << bytes << " bytes in " << ms << " ms, "
            << 1e-6 * bytes / ms << " GB/s\n";
  return right ? 0 : 1;
}
