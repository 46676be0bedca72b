// Chapter 5. LayerNorm against its formula, in each form.
#include "nn/layers/layer_norm.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/autograd/ops/textbook_norm.h"
#include "tests/nn/compare.h"

using namespace orrery;

namespace {

// Every row of x [..., D] by the formula, then scaled and shifted.
Tensor textbook(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, LayerNormForm form) {
  const i64 D = x.size(-1);
  Tensor y = zeros(x.shape(), f64);
  for (i64 begin = 0; begin < x.count(); begin += D) {
    const double* row = x.data<double>() + begin;
    const small::TextbookNorm norm = small::textbook_norm({row, row + D}, eps, form);
    for (i64 i = 0; i < D; ++i)
      y.write<double>()[begin + i] = norm.of(row[i]) * weight.at(i) + (bias.defined() ? bias.at(i) : 0);
  }
  return y;
}

}  // namespace

TEST_CASE("every form follows its formula") {
  Rng rng(5);
  const Tensor x = randn({2, 3, 6}, rng, f64);
  for (const LayerNormForm form : small::norm_forms) {
    for (const bool bias : {true, false}) {
      nn::LayerNorm norm(6, {.eps = 0.1, .bias = bias, .form = form});
      make_noisy(norm, 6);
      CHECK(distance(norm(constant(x)).value(),
                     textbook(x, norm.weight.value(), bias ? norm.bias.value() : Tensor(), 0.1, form)) < 1e-13);
      CHECK(norm.parameter_count() == (bias ? 12 : 6));
    }
  }
}

TEST_CASE("a new norm gives mean 0 and variance 1") {
  Rng rng(5);
  const Tensor y = nn::LayerNorm(50)(constant(randn({1, 50}, rng) * 3.0)).value();
  CHECK(sum(y).item() / 50 == doctest::Approx(0).epsilon(1e-5));
  CHECK(sum_of_squares(y) / 50 == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("the norm of a sum is the norm of x + dropout(f), in every form") {
  Rng rng(5);
  const Variable x = constant(randn({2, 3, 6}, rng, f64)), f = constant(randn({2, 3, 6}, rng, f64));
  const Draw draw{.seed = 3, .step = 1};
  for (const LayerNormForm form : small::norm_forms) {
    for (const bool bias : {true, false}) {
      nn::LayerNorm norm(6, {.eps = 0.1, .bias = bias, .form = form});
      make_noisy(norm, 6);
      for (const double p : {0.0, 0.4})
        CHECK(distance(norm.normalized_sum(x, f, p, draw).value(), norm(x + dropout(f, p, draw)).value()) < 1e-13);
    }
  }
}
