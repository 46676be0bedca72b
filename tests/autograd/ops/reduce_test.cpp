// Chapter 3. Sums, means and maxima over axes, and where their gradients go.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {
Tensor table() { return Tensor::of<double>({2, 3}, {1, 5, 3, 4, 2, 5}); }
}  // namespace

TEST_CASE("reductions: values, shapes and gradients") {
  const Variable x = parameter(table());
  CHECK(sum(x).item() == 20);
  CHECK(sum(x).shape() == Shape{});
  CHECK(close(sum(x, {0}).value(), {5, 7, 8}));
  CHECK(close(mean(x, {-1}).value(), {3, 11.0 / 3}));
  CHECK(max(x, {-1}, true).shape() == Shape{2, 1});
  CHECK(close(max(x, {-1}).value(), {5, 5}));
  backward(sum(x, {0}), vector_of({1, 2, 3}));
  CHECK(close(x.gradient(), {1, 2, 3, 1, 2, 3}));
  CHECK(close(gradient_of_sum([](const Variable& v) { return mean(v, {0}); }, table()), {.5, .5, .5, .5, .5, .5}));
  CHECK(close(gradient_of_sum([](const Variable& v) { return max(v, {1}); }, table()), {0, 1, 0, 0, 0, 1}));
}

TEST_CASE("equal maxima share the gradient evenly") {
  CHECK(close(gradient_of_sum([](const Variable& v) { return max(v); }, table()), {0, .5, 0, 0, 0, .5}));
}

TEST_CASE("the gradient of a mean is divided by the number of elements, and rounds once") {
  for (const Dtype dtype : {f32, f64}) {
    for (i64 n = 1; n <= 100; ++n) {
      const Variable x = parameter(zeros({n}, dtype));
      backward(mean(x), full({}, static_cast<double>(n), dtype));
      CHECK(x.gradient().at(0) == 1);
    }
  }
}

TEST_CASE("reductions of nothing, and errors") {
  const Variable none = parameter(zeros({0, 3}, f64));
  CHECK(sum(none).item() == 0);
  CHECK(close(sum(none, {0}).value(), {0, 0, 0}));
  CHECK(std::isnan(mean(none).item()));
  CHECK(contains(error_of([&] { (void)max(none); }), "max: has no elements to choose from"));
  CHECK(contains(error_of([&] { (void)sum(none, {2}); }), "sum: axis 2 is out of range for shape [0, 3]"));
  CHECK(contains(error_of([&] { (void)mean(none, {1, -1}); }), "named twice"));
}

TEST_CASE("reductions have the same bits for any number of threads") {
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}, Axes{2}, Axes{0, 2}}) {
    CHECK(thread_proof([&](const auto& x) { return sum(x[0], axes); }, {{33, 101, 17}}));
    CHECK(thread_proof([&](const auto& x) { return mean(x[0], axes); }, {{33, 101, 17}}));
    CHECK(thread_proof([&](const auto& x) { return max(x[0], axes); }, {{33, 101, 17}}));
  }
}
