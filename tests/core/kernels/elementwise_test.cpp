// Chapter 8. Tests of elementwise loops: joined axes, broadcasting against index formulas; and of tasks with scratch.
#include "core/kernels/elementwise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/kernels/scratch.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

namespace {

// The element of `x` that stands at element number i of a tensor of shape `result`, by the definition of broadcasting.
double broadcast_at(const Tensor& x, const Shape& result, i64 i) {
  i64 position = 0, stride = 1;
  for (int axis = 1; axis <= result.rank(); ++axis) {
    const i64 index = i % result[-axis];
    i /= result[-axis];
    if (axis > x.rank()) continue;
    if (x.size(-axis) != 1) position += index * stride;
    stride *= x.size(-axis);
  }
  return x.at(position);
}

Shape random_shape(Rng& rng) {
  Shape shape;
  for (i64 rank = rng.integer(0, 5); rank > 0; --rank) shape = shape.plus(rng.integer(1, 5));
  return shape;
}

// `shape` with some axes made 1 and some leading axes dropped: something that broadcasts to it.
Shape narrowed(const Shape& shape, Rng& rng) {
  Shape result;
  for (i64 axis = rng.integer(0, shape.rank() + 1); axis < shape.rank(); ++axis) {
    result = result.plus(rng.uniform() < 0.4 ? 1 : shape[static_cast<int>(axis)]);
  }
  return result;
}

}  // namespace

TEST_CASE("neighbouring axes along which both operands advance alike are joined") {
  CHECK(BroadcastLoop({4, 5, 6}, {4, 5, 6}, {4, 5, 6}).rank == 1);
  CHECK(BroadcastLoop({4, 5, 6}, {4, 5, 6}, {6}).rank == 2);
  CHECK(BroadcastLoop({4, 5, 6}, {4, 5, 6}, {5, 6}).rank == 2);
  CHECK(BroadcastLoop({4, 5, 6}, {4, 1, 6}, {1, 5, 1}).rank == 3);
  CHECK(BroadcastLoop({4, 5, 6}, {}, {4, 5, 6}).rank == 1);
  CHECK(BroadcastLoop({}, {}, {}).rank == 1);
  CHECK(BroadcastLoop({1, 1}, {1, 1}, {1}).rank == 1);
}

TEST_CASE("random pairs of shapes broadcast as the definition says") {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const Shape shape = random_shape(rng);
    const Tensor a = randn(narrowed(shape, rng), rng, f64), b = randn(narrowed(shape, rng), rng, f64);
    const Tensor z = broadcast_map(a, b, "test", [](auto x, auto y) { return x - 2 * y; });
    REQUIRE(z.shape() == broadcast(a.shape(), b.shape(), "test"));
    bool equal = true;
    for (i64 i = 0; i < z.count(); ++i) {
      equal = equal && z.at(i) == broadcast_at(a, z.shape(), i) - 2 * broadcast_at(b, z.shape(), i);
    }
    CAPTURE(a.shape());
    CAPTURE(b.shape());
    CHECK(equal);
  }
}

TEST_CASE("narrow rows that repeat an operand broadcast as the definition says, for any number of threads") {
  Rng rng(9);
  const auto f = [](auto x, auto y) { return x - 2 * y; };
  for (const i64 n : {2, 3, 15, 16, 17, 63, 64, 65}) {
    for (const auto& [shape_a, shape_b] : std::initializer_list<std::pair<Shape, Shape>>{
             {{700, n}, {700, 1}}, {{700, n}, {n}}, {{700, 1}, {n}}, {{9, 1, 70, n}, {1, 5, 70, 1}}}) {
      const Tensor a = randn(shape_a, rng, f64), b = randn(shape_b, rng, f64), z = broadcast_map(a, b, "test", f);
      bool equal = true;
      for (i64 i = 0; i < z.count(); ++i)
        equal = equal && z.at(i) == broadcast_at(a, z.shape(), i) - 2 * broadcast_at(b, z.shape(), i);
      CAPTURE(z.shape());
      CHECK(equal);
      const Tensor *x = &a, *y = &b;
      CHECK(same_for_any_threads([=] { return broadcast_map(*x, *y, "test", f); }));
    }
  }
}

TEST_CASE("large operands are cut into chunks inside rows, and still broadcast") {
  Rng rng(2);
  const Tensor a = randn({3, 1, 20'011}, rng), b = randn({2, 1}, rng), row = randn({20'011}, rng);
  const auto minus = [](auto x, auto y) { return x - y; };
  const Tensor z = broadcast_map(broadcast_map(a, b, "test", minus), row, "test", minus);
  REQUIRE(z.shape() == Shape{3, 2, 20'011});
  bool equal = true;
  for (i64 i = 0; i < z.count(); i += 7) {
    const auto at = [&](const Tensor& x) { return static_cast<float>(broadcast_at(x, z.shape(), i)); };
    const float difference = at(a) - at(b);
    equal = equal && z.data<float>()[i] == difference - at(row);
  }
  CHECK(equal);
}

TEST_CASE("map may write where it reads") {
  std::vector<double> x{1, 2, 3};
  map<double>(3, x.data(), x.data(), [](double value) { return value * value; });
  CHECK(x == std::vector<double>{1, 4, 9});
  map<double>(3, x.data(), x.data(), x.data(), [](double a, double b) { return a + b; });
  CHECK(x == std::vector<double>{2, 8, 18});
}

TEST_CASE("maps broadcast sizes of 0 and 1") {
  const auto plus = [](auto x, auto y) { return x + y; };
  CHECK(broadcast_map(full({0, 3}, 1.0), full({3}, 1.0), "test", plus).shape() == Shape{0, 3});
  CHECK(broadcast_map(full({2, 0}, 1.0), full({2, 1}, 1.0), "test", plus).shape() == Shape{2, 0});
  CHECK(broadcast_map(full({}, 1.0), full({}, 2.0), "test", plus).item() == 3);
  CHECK(map(full({0}, 1.0), "test", [](auto x) { return x; }).count() == 0);
}

TEST_CASE("operands must fit and be numbers of one dtype") {
  const auto plus = [](auto x, auto y) { return x + y; };
  const auto error = [&](const Tensor& a, const Tensor& b) {
    return error_of([&] { broadcast_map(a, b, "op", plus); });
  };
  CHECK(error(full({2}, 1.0), full({2}, 1.0, f64)) == "op: dtypes differ (f32 and f64)");
  CHECK(error(full({2}, 1.0), full({3}, 1.0)) == "op: shapes [2] and [3] do not broadcast (2 against 3 at axis -1)");
  CHECK(error(Tensor(), full({3}, 1.0)) == "op: needs two tensors");
  CHECK(error(arange(3), arange(3)) == "op: needs f32 or f64, got i32");
  CHECK(error_of([&] { map(arange(3), "op", [](auto x) { return x; }); }) == "op: needs f32 or f64, got i32");
}

TEST_CASE("every row is visited once") {
  std::vector<int> visits(10'000, 0);
  for_rows(10'000, 64, [&](i64 row) { ++visits[static_cast<size_t>(row)]; });
  CHECK(std::count(visits.begin(), visits.end(), 1) == 10'000);
}

TEST_CASE("every task runs once, with scratch that no other thread writes to, for any number of threads") {
  for (const int count : {1, 3, 8}) {
    const small::Threads scope(count);
    for (const i64 tasks : {1, 7, 100}) {
      std::vector<int> runs(static_cast<size_t>(tasks)), torn(static_cast<size_t>(tasks));
      kernels::tasks_with_scratch<float>(tasks, 1000, [&](i64 i, float* scratch) {
        std::fill_n(scratch, 1000, static_cast<float>(i));
        torn[static_cast<size_t>(i)] = std::count(scratch, scratch + 1000, static_cast<float>(i)) != 1000;
        ++runs[static_cast<size_t>(i)];
      });
      CHECK(std::count(runs.begin(), runs.end(), 1) == tasks);
      CHECK(std::count(torn.begin(), torn.end(), 0) == tasks);
    }
  }
}
