// Chapter 2. Moving elements: where values go, and that gradients go back the same way.
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

TEST_CASE("layout's bits do not depend on the number of threads") {
  CHECK(thread_proof(
      [](const auto& x) {
        return concat({permute(x[0], {2, 0, 1}), slice(x[1], 1, 3, 36)}, 1);
      },
      {{37, 65, 41}, {41, 40, 65}}));
}
