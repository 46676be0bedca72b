// Chapter 5. Tests of SGD, Adam and AdamW: by hand and in special cases; many steps are PyTorch's
// (tests/torch/optim_test.cpp).
#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/autograd/small_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using doctest::Approx;

namespace {

// Squared error of x w against y, summed and divided by `divisor`.
Variable squared_error(const Tensor& x, const Variable& w, const Tensor& y, double divisor) {
  const Variable r = plus(product(constant(x), w), constant(-y));
  return times(total(times(r, r)), constant(full({}, 1 / divisor, f64)));
}

}  // namespace

TEST_CASE("first steps are those computed by hand, with momentum and weight decay") {
  Variable w = leaf({1});
  optim::SGD sgd({w}, {.momentum = 0.5, .weight_decay = 0.25});
  w.mutable_gradient() = full({1}, 2.0, f64);
  sgd.step(0.5);  // g = 2.25, b = 2.25
  CHECK(w.value().at(0) == 1 - 0.5 * 2.25);
  w.mutable_gradient() = full({1}, 1.0, f64);
  sgd.step(0.25);  // g = 1 - 0.25 * 0.125, b = 1.125 + g
  CHECK(w.value().at(0) == -0.125 - 0.25 * (1.125 + 1 - 0.03125));
  CHECK(sgd.state().at("momentum.parameter 0").item() == 1.125 + 1 - 0.03125);
}

TEST_CASE("k micro-batches with a common divisor make one batch") {
  const Threads one_thread(1);  // the products are too small to share
  Rng rng(4);
  const Tensor x = randn({12, 3}, rng, f64), y = randn({12, 1}, rng, f64), start = randn({3, 1}, rng, f64);
  Variable whole = parameter(start.clone()), parts = parameter(start.clone());
  optim::SGD one({whole}, {.momentum = 0.9}), several({parts}, {.momentum = 0.9});
  for (int step = 0; step < 20; ++step) {
    backward(squared_error(x, whole, y, 12));
    one.step(0.05);
    for (const auto& [begin, end] : {std::pair{0, 5}, {5, 6}, {6, 12}}) {  // unequal sizes
      backward(squared_error(x.rows(begin, end), parts, y.rows(begin, end), 12));
    }
    several.step(0.05);
  }
  CHECK_FALSE(same_bits(whole.value(), start));
  for (i64 i = 0; i < 3; ++i) CHECK(parts.value().at(i) == doctest::Approx(whole.value().at(i)).epsilon(1e-12));
}

TEST_CASE("no momentum, no state; wrong momentum, an error") {
  CHECK(optim::SGD({leaf({1})}).state().empty());
  CHECK(error_of([] { optim::SGD({leaf({1})}, {.momentum = 1}); }) == "sgd: momentum must be in [0, 1), got 1");
  CHECK(error_of([] { optim::SGD({leaf({1})}, {.weight_decay = -1}); }) ==
        "optimizer: weight decay must be 0 or more and finite, got -1");
}

namespace {

Variable one_number(double value, Dtype dtype = f64) { return parameter(full({1}, value, dtype), "w"); }

}  // namespace

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
