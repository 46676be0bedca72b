// Chapter 4. Log-softmax and cross entropy in numbers.
// Question: what is the gradient of the loss of a classifier with respect to its logits?
// Answer: p - q, the model's probabilities minus the wanted ones, divided by the number of targets that count. The
//   loss is computed from x_i - log(sum of e^x_j), and so stays finite where softmax rounds to 0.
#include <cmath>
#include <iostream>
#include <numbers>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i64 K = 3;

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }

// The loss of logits x [rows, K], its gradient, and by_hand, which the gradient must be.
bool show(const char* what, const Tensor& x, const Tensor& targets, const CrossEntropyOptions& options,
          const Tensor& by_hand) {
  const Variable logits = parameter(x.clone());
  const Variable loss = cross_entropy(logits, targets, options);
  backward(loss);
  std::cout << what << "\n  loss " << loss.item() << "\n  dx by hand\n"
            << by_hand << "\n  backward says\n"
            << logits.gradient() << "\n\n";
  return largest(by_hand - logits.gradient()) < 1e-12;
}

// Squared error as -ln of a normal density, BCE as the cross entropy of two classes, KL as that without q's entropy.
bool show_relatives(const Tensor& p, const Tensor& q) {
  for (const double guess : {2, 1}) {
    const Variable y = parameter(full({1}, guess, f64)), error = mse(y, full({1}, 3, f64));
    backward(error * 0.5);
    std::cout << "guess " << guess << " for 3: squared error " << error.item() << ", -ln of the density "
              << -std::log(std::exp(-error.item() / 2) / std::sqrt(2 * std::numbers::pi)) << ", gradient of half of it "
              << y.gradient().at(0) << '\n';
  }
  const Variable two = constant(Tensor::of<double>({1, 2}, {0, std::log(4.0)}));
  double difference = 0;
  for (const i32 t : {1, 0}) {
    const Variable z = parameter(full({1}, std::log(4.0), f64)), bce = bce_with_logits(z, full({1}, t, f64));
    backward(bce);
    std::cout << "logit ln 4, target " << t << ": BCE " << bce.item() << ", gradient " << z.gradient().at(0) << '\n';
    difference += std::fabs(bce.item() - cross_entropy(two, Tensor::of<i32>({1}, {t})).item());
  }
  const auto H = [](const Tensor& of, const Tensor& by) { return -dot(of, log(constant(by)).value()); };
  const auto KL = [](const Tensor& of, const Tensor& by) { return kl_divergence(log(constant(by)), of).item(); };
  std::cout << "entropy of q " << H(q, q) << ", KL(q, p) " << KL(q, p) << ", KL(p, q) " << KL(p, q) << "\n\n";
  return difference + std::fabs(H(q, p) - H(q, q) - KL(q, p)) < 1e-12;
}

}  // namespace

int main() {
  std::cout.precision(4);
  const Tensor row = Tensor::of<double>({1, K}, {0, std::log(4.0), std::log(5.0)});
  const Variable x = parameter(row.clone()), y = log_softmax(x);
  const Tensor p = softmax(constant(row)).value(), dy = Tensor::of<double>({1, K}, {1, 2, -1});
  backward(y, dy);
  const Tensor by_hand = dy - p * sum(dy).item();
  std::cout << "p                      " << p << "\nlog p                  " << y.value() << "\ndx = dy - p sum(dy)    "
            << by_hand << "\nbackward says          " << x.gradient() << "\n\n";
  bool right = largest(by_hand - x.gradient()) < 1e-12;

  const Tensor target = Tensor::of<i32>({1}, {1}), q = Tensor::of<double>({1, K}, {0, 1, 0});
  right &= show("target 1, q = (0, 1, 0)", row, target, {}, p - q);

  const double eps = 0.1, off = eps / K, on = 1 - eps + off;
  const Tensor smooth = Tensor::of<double>({1, K}, {off, on, off});
  std::cout << "q smoothed by " << eps << "  " << smooth << '\n';
  right &= show("target 1, smoothed", row, target, {.label_smoothing = eps}, p - smooth) && show_relatives(p, smooth);

  const Tensor rows = concat({row, row, row}, 0), ps = concat({p, p, p}, 0);
  const Tensor qs = concat({q, Tensor::of<double>({1, K}, {0, 0, 1}), p}, 0);  // q = p: no gradient
  right &= show("three rows: targets 1 and 2, and one that is ignored", rows, Tensor::of<i32>({3}, {1, 2, -100}), {},
                (ps - qs) * 0.5);

  const Variable far = constant(Tensor::of<double>({1, 2}, {0, -800}));
  const double two_steps = std::log(softmax(far).value().at(1)), one_step = log_softmax(far).value().at(1);
  std::cout << "logits 0 and -800: log(softmax) is " << two_steps << ", log_softmax is " << one_step << '\n';
  return right && std::isinf(two_steps) && one_step == -800 ? 0 : 1;
}
