// Chapter 5. Tests of Adam and AdamW: by hand, against the formula of the paper written again, and in special cases.
#include "optim/adam.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using doctest::Approx;
using Numbers = std::vector<double>;

namespace {

Variable one_number(double value, Dtype dtype = f64) { return parameter(full({1}, value, dtype), "w"); }

// One coordinate as torch.optim computes it: the learning rate is applied to m_hat / (sqrt(v_hat) + eps).
struct Reference {
  double p, m = 0, v = 0;
  int t = 0;
  void step(double g, double rate, const optim::AdamOptions& o, bool decoupled) {
    if (decoupled) p = p - rate * o.weight_decay * p;
    if (!decoupled) g = g + o.weight_decay * p;
    ++t;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t)), v_hat = v / (1 - std::pow(o.beta2, t));
    p = p - rate * m_hat / (std::sqrt(v_hat) + o.eps);
  }
};

// Largest difference from the reference, relative to 1 or to the value where that is larger, after `steps` steps.
template <class Optimizer>
double worst_error(Dtype dtype, const optim::AdamOptions& o, bool decoupled, int steps) {
  Rng rng(7);
  Variable w = parameter(randn({4, 9}, rng, dtype), "w");
  std::vector<Reference> reference;
  for (double p : elements(w.value())) reference.push_back({p});
  Optimizer adam({w}, {.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .weight_decay = o.weight_decay});
  for (int step = 1; step <= steps; ++step) {
    const double rate = 0.01 / std::sqrt(step);
    w.mutable_gradient() = scale(randn({4, 9}, rng, dtype), step % 10 == 0 ? 1e-6 : 1.0);
    for (size_t i = 0; i < reference.size(); ++i) {
      reference[i].step(w.gradient().at(static_cast<i64>(i)), rate, o, decoupled);
    }
    adam.step(rate);
  }
  double worst = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double expected = reference[i].p, got = w.value().at(static_cast<i64>(i));
    worst = small::worse(worst, std::abs(got - expected) / std::max(1.0, std::abs(expected)));
  }
  return worst;
}

}  // namespace

TEST_CASE("the first step is the learning rate, against the gradient's sign") {
  for (const double g : {3.0, 1e-3, -40.0}) {
    Variable w = one_number(1);
    optim::Adam adam({w});
    w.mutable_gradient() = full({1}, g, f64);
    adam.step(0.1);
    CHECK(w.value().item() == Approx(1 - 0.1 * g / (std::abs(g) + 1e-8)).epsilon(1e-14));
  }
}

TEST_CASE("two steps move the parameter and its moments as computed by hand") {
  Variable w = one_number(1);
  optim::Adam adam({w}, {.beta1 = 0.5, .beta2 = 0.75, .eps = 1});
  w.mutable_gradient() = full({1}, 2.0, f64);
  adam.step(0.25);  // m = 1, v = 1; m_hat = 2, v_hat = 4; p = 1 - 0.25 * 2 / 3
  CHECK(w.value().item() == Approx(1 - 0.5 / 3).epsilon(1e-14));
  w.mutable_gradient() = full({1}, -1.0, f64);
  adam.step(0.25);  // m = 0, v = 1: no move
  CHECK(w.value().item() == Approx(1 - 0.5 / 3).epsilon(1e-14));
  CHECK(adam.state().at("m.w").item() == 0);
  CHECK(adam.state().at("v.w").item() == 1);
  CHECK(adam.state().at("step.w").item() == 2);
}

TEST_CASE("many steps of Adam follow its formula") {
  const optim::AdamOptions defaults{}, paper{.beta2 = 0.98, .eps = 1e-9}, decay{.weight_decay = 0.1},
      large_eps{.beta1 = 0.8, .beta2 = 0.9, .eps = 0.3, .weight_decay = 0.3}, no_mean{.beta1 = 0, .beta2 = 0.5};
  for (const optim::AdamOptions& options : {defaults, paper, decay, large_eps, no_mean}) {
    CHECK(worst_error<optim::Adam>(f64, options, false, 300) < 1e-12);
    CHECK(worst_error<optim::AdamW>(f64, options, true, 300) < 1e-12);
    CHECK(worst_error<optim::Adam>(f32, options, false, 300) < 2e-5);
    CHECK(worst_error<optim::AdamW>(f32, options, true, 300) < 2e-5);
  }
}

TEST_CASE("AdamW shrinks the parameter, Adam adds to the gradient") {
  Variable w = one_number(2);
  optim::AdamW adamw({w});  // PyTorch's default: 0.01
  w.mutable_gradient() = zeros({1}, f64);
  adamw.step(0.5);
  CHECK(w.value().item() == Approx(2 * (1 - 0.5 * 0.01)).epsilon(1e-14));
  Variable u = one_number(2);
  optim::Adam adam({u}, {.weight_decay = 0.01});
  u.mutable_gradient() = zeros({1}, f64);
  adam.step(0.5);  // g = 0.02: a first step of the learning rate
  CHECK(u.value().item() == Approx(1.5).epsilon(1e-6));
}

TEST_CASE("zero gradients move nothing, and give no NaN") {
  for (const Dtype dtype : {f32, f64}) {
    Variable w = one_number(1, dtype);
    optim::Adam adam({w}, {.beta2 = 0.98, .eps = 1e-9});
    for (int step = 0; step < 5; ++step) {
      w.mutable_gradient() = zeros({1}, dtype);
      adam.step(1);
    }
    CHECK(w.value().item() == 1);
  }
}

TEST_CASE("bits do not depend on the number of threads") {
  CHECK(same_for_any_threads([] {
    Rng rng(8);
    Variable w = parameter(randn({50001}, rng), "w");
    optim::AdamW adam({w}, {.weight_decay = 0.1});
    for (int step = 0; step < 3; ++step) {
      w.mutable_gradient() = randn({50001}, rng);
      adam.step(0.1);
    }
    return concat({w.value(), adam.state().at("m.w"), adam.state().at("v.w")}, 0);
  }));
}

TEST_CASE("options of Adam that are out of range are errors that name them") {
  const auto made = [](const optim::AdamOptions& options) {
    return error_of([&] { optim::Adam adam({one_number(1)}, options); });
  };
  CHECK(made({.beta1 = 1}) == "adam: beta1 must be in [0, 1), got 1");
  CHECK(made({.beta2 = -0.5}) == "adam: beta2 must be in [0, 1), got -0.5");
  CHECK(made({.eps = -1}) == "adam: eps must be 0 or more and finite, got -1");
  CHECK(made({.eps = INFINITY}) == "adam: eps must be 0 or more and finite, got inf");
  CHECK(made({.weight_decay = std::nan("")}) == "optimizer: weight decay must be 0 or more and finite, got nan");
}

TEST_CASE("a gradient whose square overflows moves a parameter like any other, and later ones still do") {
  for (const double huge : {1e20, 1e30, 3e38}) {
    CAPTURE(huge);
    for (const double sign : {1.0, -1.0}) {
      Variable w = one_number(0, f32);
      optim::Adam adam({w}, {});
      w.mutable_gradient() = full({1}, sign * huge);
      adam.step(0.1);
      CHECK(w.value().item() == Approx(-0.1 * sign).epsilon(1e-5));
      CHECK(std::isfinite(adam.state().at("v.w").item()));
      for (int step = 0; step < 300; ++step) {
        w.mutable_gradient() = full({1}, -sign * huge);
        adam.step(0.1);
      }
      CHECK(sign * w.value().item() > 1);
    }
  }
}
