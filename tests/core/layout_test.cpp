// Chapter 1. Tests of moving elements: concat, slice, flip, permute, broadcast_to against index formulas.
#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

namespace {

// 0, 1, 2, ... in the given shape: element (i, j, k) of [a, b, c] is (i b + j) c + k.
Tensor counting(const Shape& shape) { return arange(shape.count()).reshape(shape); }

}  // namespace

TEST_CASE("slice along every axis") {
  const Tensor x = counting({3, 4, 5});
  const Tensor first = slice(x, 0, 1, 3), middle = slice(x, 1, 1, 3), last = slice(x, -1, 2, 5);
  CHECK(first.shape() == Shape{2, 4, 5});
  CHECK(middle.shape() == Shape{3, 2, 5});
  CHECK(last.shape() == Shape{3, 4, 3});
  CHECK(first.shares_memory_with(x));
  for (i64 i = 0; i < 2; ++i) {
    for (i64 j = 0; j < 2; ++j) {
      for (i64 k = 0; k < 3; ++k) {
        CHECK(first.at((i * 4 + j) * 5 + k) == ((i + 1) * 4 + j) * 5 + k);
        CHECK(middle.at((i * 2 + j) * 5 + k) == (i * 4 + j + 1) * 5 + k);
        CHECK(last.at((i * 4 + j) * 3 + k) == (i * 4 + j) * 5 + k + 2);
      }
    }
  }
}

TEST_CASE("ends of a slice count as in NumPy") {
  const auto range = [](i64 size, i64 begin, i64 end) {
    const SliceRange r = slice_range(size, begin, end);
    return std::pair(r.begin, r.end);
  };
  CHECK(range(10, 2, 5) == std::pair<i64, i64>(2, 5));
  CHECK(range(10, 0, -1) == std::pair<i64, i64>(0, 9));
  CHECK(range(10, -3, 100) == std::pair<i64, i64>(7, 10));
  CHECK(range(10, -100, 3) == std::pair<i64, i64>(0, 3));
  CHECK(range(10, 7, 3) == std::pair<i64, i64>(7, 7));
  CHECK(range(10, 20, 30) == std::pair<i64, i64>(10, 10));
  CHECK(range(0, 0, 1) == std::pair<i64, i64>(0, 0));
  const Tensor x = counting({2, 5});
  CHECK(elements(slice(x, 1, 1)) == Numbers{1, 2, 3, 4, 6, 7, 8, 9});
  CHECK(elements(slice(x, 1, -2)) == Numbers{3, 4, 8, 9});
  CHECK(slice(x, 1, 3, 3).shape() == Shape{2, 0});
  CHECK(error_of([&] { slice(x, 2, 0, 1); }) == "slice: axis 2 is out of range for shape [2, 5]");
}

TEST_CASE("concat along every axis undoes slicing") {
  const Tensor x = counting({4, 4, 4});
  for (const i64 axis : {0, 1, 2, -1}) {
    CHECK(same_bits(concat({slice(x, axis, 0, 1), slice(x, axis, 1, 1), slice(x, axis, 1)}, axis), x));
  }
  CHECK(elements(concat({counting({2, 1}), counting({2, 2})}, 1)) == Numbers{0, 0, 1, 1, 2, 3});
}

TEST_CASE("narrow and wide columns are sliced, joined and added alike, with every bit") {
  for (const i64 rows : {1, 5, 3000}) {
    for (const i64 run : {1, 3, 15, 16, 17, 70}) {
      const Tensor x = counting({rows, run + 4}).to(f64), part = slice(x, 1, 2, run + 2);
      CHECK(part.shape() == Shape{rows, run});
      Tensor sum = x.clone();
      slice_into(sum, part, 1, 1, true);
      bool right = true;
      for (i64 row = 0; row < rows; ++row) {
        for (i64 i = 0; i < run + 4; ++i) {
          const double at = static_cast<double>(row * (run + 4) + i);
          if (i >= 2 && i < run + 2) right = right && part.at(row * run + i - 2) == at;
          right = right && sum.at(row * (run + 4) + i) == (i >= 1 && i <= run ? 2 * at + 1 : at);
        }
      }
      CHECK(right);
      CHECK(same_bits(concat({slice(x, 1, 0, 2), part, slice(x, 1, run + 2)}, 1), x));
    }
  }
  CHECK(std::signbit(slice(full({2, 3}, -0.0), 1, 0, 1).at(1)));
}

TEST_CASE("concat joins only what fits") {
  CHECK(error_of([] { concat(std::span<const Tensor>(), 0); }) == "concat: needs at least one part");
  CHECK(error_of([] {
          concat({full({2, 3}, 1.0), full({3, 3}, 1.0)}, 1);
        }) == "concat: shapes differ in another axis than 1 ([2, 3] and [3, 3])");
  CHECK(error_of([] {
          concat({full({2}, 1.0), full({2, 1}, 1.0)}, 0);
        }) == "concat: shapes differ in another axis than 0 ([2] and [2, 1])");
  CHECK(error_of([] { concat({full({2}, 1.0), full({2}, 1.0, f64)}, 0); }) == "concat: dtypes differ (f32 and f64)");
}

TEST_CASE("slice_into writes or adds a part") {
  Tensor x = counting({2, 4}).to(f64);
  slice_into(x, full({2, 2}, 10.0, f64), 1, 1, false);
  CHECK(elements(x) == Numbers{0, 10, 10, 3, 4, 10, 10, 7});
  slice_into(x, full({1, 4}, 100.0, f64), 0, 1, true);
  CHECK(elements(x) == Numbers{0, 10, 10, 3, 104, 110, 110, 107});
  CHECK(error_of([&] {
          slice_into(x, full({2, 2}, 1.0, f64), 1, 3, false);
        }) == "slice_into: a part of shape [2, 2] does not fit into [2, 4] at 3");
  CHECK(error_of([&] {
          slice_into(x, full({3, 2}, 1.0, f64), 1, 0, false);
        }) == "slice_into: a part of shape [3, 2] does not fit into [2, 4] at 0");
  CHECK(error_of([&] {
          slice_into(x, full({2, 2}, 1.0, f64), 1, -1, false);
        }) == "slice_into: a part of shape [2, 2] does not fit into [2, 4] at -1");
  constexpr i64 far = std::numeric_limits<i64>::max();  // far + 2 would overflow to a negative number
  CHECK(error_of([&] {
          slice_into(x, full({2, 2}, 1.0, f64), 1, far, false);
        }) == "slice_into: a part of shape [2, 2] does not fit into [2, 4] at 9223372036854775807");
  CHECK(error_of([&] { slice_into(x, x.rows(0, 1), 0, 0, true); }) ==
        "slice_into: the part must not share memory with the tensor");
  CHECK(elements(x) == Numbers{0, 10, 10, 3, 104, 110, 110, 107});
  CHECK(error_of([&] { slice_into(x, full({2, 2}, 1.0, f32), 1, 0, false); }).find("f32") != std::string::npos);
}

TEST_CASE("flip reverses one axis") {
  const Tensor x = counting({2, 3});
  CHECK(elements(flip(x, 1)) == Numbers{2, 1, 0, 5, 4, 3});
  CHECK(elements(flip(x, 0)) == Numbers{3, 4, 5, 0, 1, 2});
  CHECK(same_bits(flip(x, -1), flip(x, 1)));
  const Tensor y = counting({3, 5, 7});
  for (const i64 axis : {0, 1, 2}) CHECK(same_bits(flip(flip(y, axis), axis), y));
  CHECK(flip(full({0, 2}, 1.0), 0).shape() == Shape{0, 2});
  CHECK(error_of([&] { flip(x, 2); }) == "flip: axis 2 is out of range for shape [2, 3]");
}

TEST_CASE("permute: element (i0, i1, i2, i3) moves where the order says") {
  const Shape shape{2, 3, 4, 5};
  const Tensor x = counting(shape);
  std::array<i64, 4> order{0, 1, 2, 3};
  do {
    const Tensor y = permute(x, order);
    bool equal = true;
    for (i64 i = 0; i < y.count(); ++i) {
      std::array<i64, 4> index{};  // of the result, put at the axes of x
      i64 rest = i;
      for (int axis = 3; axis >= 0; --axis) {
        index.at(static_cast<size_t>(order.at(static_cast<size_t>(axis)))) = rest % y.size(axis);
        rest /= y.size(axis);
      }
      equal = equal && y.at(i) == ((index[0] * 3 + index[1]) * 4 + index[2]) * 5 + index[3];
    }
    CHECK(equal);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("permute with negative axes, few axes, no elements") {
  CHECK(elements(permute(counting({2, 3}), {-1, 0})) == Numbers{0, 3, 1, 4, 2, 5});
  CHECK(permute(full({}, 4.0), {}).item() == 4);
  CHECK(permute(full({0, 3}, 1.0), {1, 0}).shape() == Shape{3, 0});
  CHECK(error_of([] { permute(full({2, 3}, 1.0), {0}); }) == "permute: names 1 axes of shape [2, 3]");
  CHECK(error_of([] { permute(full({2, 3}, 1.0), {1, -1}); }) == "permute: axis 1 is named twice");
  CHECK(error_of([] { permute(full({2, 3}, 1.0), {0, 2}); }) == "permute: axis 2 is out of range for shape [2, 3]");
}

TEST_CASE("what is not defined cannot be moved") {
  const Tensor x = full({2, 2}, 1.0), none;
  CHECK(error_of([&] { concat({x, none}, 0); }) == "concat: the tensor is not defined");
  CHECK(error_of([&] { slice(none, 0, 0); }) == "slice: the tensor is not defined");
  CHECK(error_of([&] { flip(none, 0); }) == "flip: the tensor is not defined");
  CHECK(error_of([&] { permute(none, {0}); }) == "permute: the tensor is not defined");
  CHECK(error_of([&] { broadcast_to(none, {2}); }) == "broadcast_to: the tensor is not defined");
}

TEST_CASE("broadcast_to repeats axes of size 1, and refuses others") {
  const Tensor x = Tensor::of<double>({2, 1}, {1, 2});
  CHECK(elements(broadcast_to(x, {2, 3})) == Numbers{1, 1, 1, 2, 2, 2});
  CHECK(elements(broadcast_to(full({}, 5.0), {2})) == Numbers{5, 5});
  CHECK(elements(broadcast_to(Tensor::of<float>({3}, {1, 2, 3}), {2, 3})) == Numbers{1, 2, 3, 1, 2, 3});
  CHECK(elements(broadcast_to(Tensor::of<float>({2, 1, 2}, {1, 2, 3, 4}), {2, 2, 2})) ==
        Numbers{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(error_of([&] { broadcast_to(x, {1, 3}); }) == "broadcast_to: cannot repeat [2, 1] to [1, 3]");
}
