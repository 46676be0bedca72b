// Chapter 5. Tests of SGD: by hand, against the formula written again, and a small problem solved.
#include "optim/sgd.h"

#include <doctest/doctest.h>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

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

TEST_CASE("many steps of SGD follow its formula") {
  for (const double momentum : {0.0, 0.9}) {
    for (const Dtype dtype : {f64, f32}) {
      Rng rng(3);
      Variable w = parameter(randn({5, 7}, rng, dtype), "w");
      Numbers p = elements(w.value()), b(p.size(), 0);
      optim::SGD sgd({w}, {.momentum = momentum, .weight_decay = 0.01});
      for (int step = 1; step <= 100; ++step) {
        const double rate = 0.1 / step;
        w.mutable_gradient() = randn({5, 7}, rng, dtype);
        for (size_t i = 0; i < p.size(); ++i) {
          b[i] = momentum * b[i] + w.gradient().at(static_cast<i64>(i)) + 0.01 * p[i];
          p[i] -= rate * b[i];
        }
        sgd.step(rate);
      }
      for (size_t i = 0; i < p.size(); ++i) {
        CHECK(w.value().at(static_cast<i64>(i)) == doctest::Approx(p[i]).epsilon(dtype == f64 ? 1e-12 : 1e-5));
      }
    }
  }
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

TEST_CASE("SGD finds the solution of least squares") {
  const Threads one_thread(1);
  Rng rng(5);
  const Tensor x = randn({20, 3}, rng, f64), truth = randn({3, 1}, rng, f64), y = matmul(x, truth);
  Variable w = parameter(zeros({3, 1}, f64));
  optim::SGD sgd({w}, {.momentum = 0.5});
  for (int step = 0; step < 300; ++step) {
    backward(squared_error(x, w, y, 20));
    sgd.step(0.1);
  }
  for (i64 i = 0; i < 3; ++i) CHECK(w.value().at(i) == doctest::Approx(truth.at(i)).epsilon(1e-9));
}

TEST_CASE("bits do not depend on the number of threads") {
  CHECK(same_for_any_threads([] {
    Rng rng(6);
    Variable w = parameter(randn({50001}, rng), "w");
    optim::SGD sgd({w}, {.momentum = 0.9, .weight_decay = 0.1});
    for (int step = 0; step < 3; ++step) {
      w.mutable_gradient() = randn({50001}, rng);
      sgd.step(0.1);
    }
    return w.value();
  }));
}

TEST_CASE("no momentum, no state; wrong momentum, an error") {
  CHECK(optim::SGD({leaf({1})}).state().empty());
  CHECK(error_of([] { optim::SGD({leaf({1})}, {.momentum = 1}); }) == "sgd: momentum must be in [0, 1), got 1");
  CHECK(error_of([] { optim::SGD({leaf({1})}, {.weight_decay = -1}); }) ==
        "optimizer: weight decay must be 0 or more and finite, got -1");
}
