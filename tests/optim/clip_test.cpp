// Chapter 5. Tests of clipping: the norm, the scaling, tied parameters, and the error for what is not finite.
#include "optim/clip.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/tensor_ops.h"
#include "optim/sgd.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using doctest::Approx;
using Numbers = std::vector<double>;

namespace {

// A parameter with this gradient.
Variable with_gradient(const Numbers& gradient) {
  const Shape shape{static_cast<i64>(gradient.size())};
  Variable x = parameter(zeros(shape, f64));
  x.mutable_gradient() = Tensor::of(shape, gradient);
  return x;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a tied parameter counts once and is scaled once") {
  const Variable a = with_gradient({3, 4});
  CHECK(optim::clip_grad_norm({{"a", a}, {"again", a}}, 1) == 5);
  CHECK(a.gradient().at(1) == Approx(4 / (5 + 1e-6)).epsilon(1e-14));
}

TEST_CASE("single numbers are cut to a range, or nothing changes if one is not finite") {
  const Variable a = with_gradient({3, -0.5}), b = with_gradient({-4}), bad = with_gradient({5, std::nan("")});
  optim::clip_grad_value({{"a", a}, {"again", a}, {"b", b}}, 1);
  CHECK(elements(a.gradient()) == Numbers{1, -0.5});
  CHECK(elements(b.gradient()) == Numbers{-1});
  CHECK(contains(error_of([&] { optim::clip_grad_value({{"bad", bad}}, 1); }), "parameter bad is not finite"));
  CHECK(bad.gradient().at(0) == 5);
  CHECK(contains(error_of([&] { optim::clip_grad_value({{"a", a}}, 0); }), "max_value must be positive, got 0"));
}

TEST_CASE("infinity only measures; zero gradients stay zero") {
  const Variable a = with_gradient({3, 4}), zero = with_gradient({0, 0});
  CHECK(optim::clip_grad_norm({{"a", a}}, infinity) == 5);
  CHECK(elements(a.gradient()) == Numbers{3, 4});
  CHECK(optim::clip_grad_norm({{"zero", zero}}, 1) == 0);
  CHECK(elements(zero.gradient()) == Numbers{0, 0});
}

TEST_CASE("what is not finite is named, and nothing has changed") {
  for (const double wrong : {std::nan(""), infinity, -infinity}) {
    const Variable a = with_gradient({3, 4}), b = with_gradient({1, wrong}), c = with_gradient({wrong});
    CHECK(error_of([&] {
            optim::clip_grad_norm({{"a", a}, {"layer.b", b}, {"c", c}}, 1);
          }) == "clip_grad_norm: the gradient of parameter layer.b is not finite");
    CHECK(elements(a.gradient()) == Numbers{3, 4});
  }
}

TEST_CASE("the f64 norm is right where squares overflow or vanish") {
  const Variable large = with_gradient({3e200, 0}), other = with_gradient({0, -4e200});
  CHECK(optim::clip_grad_norm({{"a", large}, {"b", other}}, 1) == Approx(5e200).epsilon(1e-14));
  CHECK(large.gradient().at(0) == Approx(0.6).epsilon(1e-14));
  CHECK(other.gradient().at(1) == Approx(-0.8).epsilon(1e-14));
  CHECK(optim::grad_norm({{"a", with_gradient({3e-200, -4e-200})}}) * 1e200 == Approx(5).epsilon(1e-14));
  CHECK(optim::grad_norm({{"a", with_gradient({1.2e308, 3})}}) == Approx(1.2e308).epsilon(1e-14));
}

TEST_CASE("a frozen parameter does not count where squares overflow or vanish either") {
  for (const double size : {1e200, 1e-200}) {
    const Variable a = with_gradient({3 * size, 4 * size});
    Variable frozen = parameter(zeros({2}, f64));
    frozen.set_frozen(true);
    for (const double ignored : {1e308, 1e10, infinity}) {
      frozen.mutable_gradient() = full({2}, ignored, f64);
      CHECK(optim::grad_norm({{"a", a}, {"frozen", frozen}}) / size == Approx(5).epsilon(1e-14));
    }
  }
}

TEST_CASE("clipping f32 gradients near the largest number leaves no silent zeros") {
  const auto huge = [] {
    Variable a = parameter(zeros({2}));
    a.mutable_gradient() = Tensor::of<float>({2}, {3e38F, -3e38F});
    return a;
  };
  Variable a = huge(), b = huge();
  CHECK(optim::clip_grad_norm({{"a", a}}, 1) == Approx(4.2426e38).epsilon(1e-4));
  CHECK(a.gradient().at(0) == Approx(std::sqrt(0.5)).epsilon(1e-6));
  optim::SGD sgd({b});
  sgd.step(1.0, 1.0);
  CHECK(b.value().at(0) == Approx(-std::sqrt(0.5)).epsilon(1e-6));
}

TEST_CASE("a norm that overflows is told from a gradient that is not finite") {
  const Variable a = with_gradient({3, 1e308}), b = with_gradient({1.5e308, -1.6e308});
  CHECK(error_of([&] {
          optim::clip_grad_norm({{"a", a}, {"layer.b", b}}, 1);
        }) ==
        "clip_grad_norm: the norm is not finite though every gradient is: the largest, of parameter layer.b, "
        "reaches 1.6e+308");
  CHECK(elements(a.gradient()) == Numbers{3, 1e308});
}

TEST_CASE("the f32 norm does not overflow where squares would") {
  Variable a = parameter(zeros({2}));
  a.mutable_gradient() = Tensor::of<float>({2}, {3e30F, 4e30F});
  CHECK(optim::clip_grad_norm({{"a", a}}, 1) == Approx(5e30).epsilon(1e-6));
  CHECK(a.gradient().at(0) == Approx(0.6).epsilon(1e-6));
}

TEST_CASE("max_norm must be positive") {
  CHECK(error_of([] { optim::clip_grad_norm({}, 0); }) == "clip_grad_norm: max_norm must be positive, got 0");
  CHECK(error_of([] { optim::clip_grad_norm({}, std::nan("")); }) ==
        "clip_grad_norm: max_norm must be positive, got nan");
}

TEST_CASE("norm and factor are clipping's two halves") {
  const Variable a = with_gradient({3, 0}), b = with_gradient({0, 4}), idle = parameter(zeros({2}, f64));
  CHECK(optim::grad_norm({{"a", a}, {"idle", idle}, {"b", b}}) == 5);
  CHECK(optim::grad_norm({}) == 0);
  CHECK(elements(a.gradient()) == Numbers{3, 0});
  CHECK(optim::clip_factor(5, 10) == 1);
  CHECK(optim::clip_factor(5, infinity) == 1);
  CHECK(optim::clip_factor(0, 1) == 1);
  CHECK(optim::clip_factor(5, 1) == 1 / (5 + 1e-6));
  CHECK(error_of([] { optim::clip_factor(5, -1); }) == "clip_grad_norm: max_norm must be positive, got -1");
  CHECK(error_of([] {
          optim::grad_norm({{"w", with_gradient({1, infinity})}});
        }) == "clip_grad_norm: the gradient of parameter w is not finite");
}
