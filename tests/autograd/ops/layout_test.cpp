// Chapter 2. Moving elements and adding them up: where values go, and that gradients go back the same way.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {
Tensor counting(const Shape& shape) {
  std::vector<double> elements(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i);
  return Tensor::of(shape, elements);
}
}  // namespace

TEST_CASE("reshape and permute move values forth and gradients back") {
  const Variable x = parameter(counting({2, 3}));
  CHECK(reshape(x, {3, -1}).shape() == Shape{3, 2});
  const Variable turned = permute(x, {1, 0});
  CHECK(close(turned.value(), {0, 3, 1, 4, 2, 5}));
  backward(turned, Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  CHECK(close(x.gradient(), {1, 3, 5, 2, 4, 6}));
}

TEST_CASE("concat, slice and split cut and join") {
  const Variable a = parameter(counting({2, 2})), b = parameter(counting({2, 1}));
  const Variable joined = concat({a, b}, 1);
  CHECK(close(joined.value(), {0, 1, 0, 2, 3, 1}));
  backward(slice(joined, 1, -2), Tensor::of<double>({2, 2}, {1, 2, 3, 4}));
  CHECK(close(a.gradient(), {0, 1, 0, 3}));
  CHECK(close(b.gradient(), {2, 4}));

  const Variable x = parameter(counting({1, 6}));
  const auto [left, right] = split(x, 2, 1);
  CHECK(close(left.value(), {0, 1}));
  CHECK(close(right.value(), {2, 3, 4, 5}));
  const auto [q, k, v] = split3(x, 1);
  CHECK(close(v.value(), {4, 5}));
  backward(k, Tensor::of<double>({1, 2}, {7, 8}));
  CHECK(close(x.gradient(), {0, 0, 7, 8, 0, 0}));
}

TEST_CASE("parts without elements have their shapes, and add nothing to a concat") {
  const Variable x = parameter(counting({2, 2}));
  CHECK(slice(x, 0, 1, 1).shape() == Shape{0, 2});
  CHECK(close(concat({x, slice(x, 0, 2)}, 0).value(), {0, 1, 2, 3}));
  CHECK(split(x, 0, 0)[0].shape() == Shape{0, 2});
}

TEST_CASE("scatter leaves its input as it is, and select's error names the entry") {
  const Tensor x = counting({2, 3});
  (void)scatter(parameter(x), 1, Tensor::of<i32>({2, 1}, {2, 0}), parameter(Tensor::of<double>({2, 1}, {7, 8})));
  CHECK(close(x, elements(counting({2, 3}))));
  CHECK(error_of([&] { (void)select(constant(x), 1, 3); }) == "select: there is no entry 3 along axis 1 of [2, 3]");
}

TEST_CASE("layout's errors name the rule") {
  const Variable x = parameter(zeros({2, 4}));
  CHECK(contains(error_of([&] { (void)reshape(x, {3, -1}); }), "reshape: "));
  CHECK(contains(error_of([&] { (void)permute(x, {0, 0}); }), "permute: axis 0 is named twice"));
  CHECK(contains(error_of([&] { (void)concat({x, parameter(zeros({3, 3}))}, 0); }), "concat: shapes differ"));
  CHECK(contains(error_of([&] { (void)split(x, 5, 1); }), "split: cannot cut"));
  CHECK(contains(error_of([&] { (void)split3(x, 1); }),
                 "split: axis 1 of [2, 4] does not divide into 3 parts\n  input 0: "));
  CHECK(contains(error_of([&] { (void)concat({x, x}, 2); }), "\n  input 1: "));
  CHECK(contains(error_of([&] { (void)concat({x, Variable()}, 0); }), "concat: the tensor is not defined"));
  CHECK(contains(error_of([&] { (void)split(Variable(), 1, 0); }), "split: the tensor is not defined"));
}

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

TEST_CASE("variance, rows of length 1, log of sums of exp: by hand, and where numbers are large or rows are 0") {
  const Tensor x = vector_of({1, 2, 3, 6}), large = Tensor::of<double>({1, 2}, {1e4, 1e4}), zero = zeros({1, 2}, f64);
  CHECK(close(variance(constant(x)).item(), 14.0 / 3));
  CHECK(close(variance(constant(x), {0}, true, 0).value(), {3.5}));
  CHECK(variance(constant(zeros({0, 3})), {1}).shape() == Shape{0});
  CHECK(contains(error_of([&] { (void)variance(constant(x.rows(0, 1))); }), "variance: needs more than 1 numbers"));
  CHECK(close(normalize(constant(vector_of({3, 4}))).value(), {0.6, 0.8}));
  CHECK(close(gradient_of_sum([](const Variable& v) { return normalize(v, 0.5); }, zero), {2, 2}));
  CHECK(contains(error_of([&] { (void)normalize(constant(x.to(f32)), 1e-30); }), "normalize: eps^2 must be"));
  CHECK(close(log_sum_exp(constant(large), {1}).value(), {1e4 + std::log(2.0)}));
  CHECK(close(gradient_of_sum([](const Variable& v) { return log_sum_exp(v); }, large), {0.5, 0.5}));
  CHECK(log_sum_exp(constant(full({2}, -INFINITY))).item() == -INFINITY);
  CHECK(log_sum_exp(constant(full({2}, INFINITY))).item() == INFINITY);
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
