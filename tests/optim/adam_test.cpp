// Chapter 5. Tests of SGD and Adam in special cases; their steps are PyTorch's (tests/torch/optim_test.cpp).
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

TEST_CASE("no momentum, no state; wrong momentum, an error") {
  CHECK(optim::SGD({leaf({1})}).state().empty());
  CHECK(error_of([] { optim::SGD({leaf({1})}, {.momentum = 1}); }) == "sgd: momentum must be in [0, 1), got 1");
  CHECK(error_of([] { optim::SGD({leaf({1})}, {.weight_decay = -1}); }) ==
        "optimizer: weight decay must be 0 or more and finite, got -1");
}

namespace {

Variable one_number(double value, Dtype dtype = f64) { return parameter(full({1}, value, dtype), "w"); }

}  // namespace

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
