// Chapter 1. Tests of shapes: counting, axes, and NumPy's broadcasting.
#include "core/shape.h"

#include <doctest/doctest.h>

#include "autograd/variable.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("a shape counts its elements") {
  CHECK(Shape{}.rank() == 0);
  CHECK(Shape{}.count() == 1);
  CHECK(Shape{2, 3, 4}.count() == 24);
  CHECK(Shape{2, 0, 4}.count() == 0);
  CHECK(Shape{2, 3, 4}.count(0, 2) == 6);
  CHECK(Shape{2, 3, 4}.count(1, 3) == 12);
  CHECK(Shape{2, 0, 4}.count(1, 3) == 0);
  CHECK(Shape{2, 3, 4}.count(3, 3) == 1);
  CHECK(Shape{}.count(0, 0) == 1);
  CHECK(error_of([] {
          Shape{i64{1} << 40, i64{1} << 40}.count();
        }) == "shape: the number of elements of [1099511627776, 1099511627776] overflows");
  CHECK(error_of([] {
          Shape{0, i64{1} << 40, i64{1} << 40}.count();
        }) == "shape: the number of elements of [0, 1099511627776, 1099511627776] overflows");
}

TEST_CASE("shapes have at most six axes and no negative sizes") {
  CHECK(Shape{1, 2, 3, 4, 5, 6}.rank() == 6);
  CHECK(error_of([] { Shape{1, 1, 1, 1, 1, 1, 1}; }) == "shape: at most 6 axes, got 7");
  CHECK(error_of([] { Shape{2, -3}; }) == "shape: sizes must be 0 or more (-1: to be inferred), got [2, -3]");
}

TEST_CASE("negative axes count from the end") {
  const Shape shape{2, 3, 4};
  CHECK(shape[0] == 2);
  CHECK(shape[-1] == 4);
  CHECK(shape[-3] == 2);
  CHECK(shape.axis(-1, "op") == 2);
  CHECK(shape.axis(1, "op") == 1);
  CHECK(error_of([&] { shape.axis(3, "sum"); }) == "sum: axis 3 is out of range for shape [2, 3, 4]");
  CHECK(error_of([&] { shape.axis(-4, "sum"); }) == "sum: axis -4 is out of range for shape [2, 3, 4]");
}

TEST_CASE("axes that a shape does not have are errors in every build") {
  const Shape shape{2, 3};
  for (const int axis : {2, 5, 6, -3, -100}) {
    const std::string rule = "axis " + std::to_string(axis) + " is out of range for shape [2, 3]";
    CHECK(error_of([&] { (void)shape[axis]; }) == "size: " + rule);
    CHECK(error_of([&] { (void)Tensor::empty(shape).size(axis); }) == "size: " + rule);
    CHECK(error_of([&] { (void)constant(Tensor::empty(shape)).size(axis); }) == "size: " + rule);
    CHECK(error_of([&] { (void)shape.with(axis, 1); }) == "shape: " + rule);
  }
  CHECK(error_of([] { (void)Shape{}[0]; }) == "size: axis 0 is out of range for shape []");
  CHECK(error_of([] { (void)Tensor().size(-1); }) == "size: axis -1 is out of range for shape []");
  CHECK(error_of([&] { (void)shape.count(1, 3); }) == "shape: axes 1 to 3 are out of range for shape [2, 3]");
  CHECK(error_of([&] { (void)shape.count(-1, 1); }) == "shape: axes -1 to 1 are out of range for shape [2, 3]");
  CHECK(error_of([&] { (void)shape.without_last(-1); }) == "shape: cannot drop -1 axes of [2, 3]");
}

TEST_CASE("shapes are changed by making new ones") {
  const Shape shape{2, 3, 4};
  CHECK(shape.with(-1, 7) == Shape{2, 3, 7});
  CHECK(shape.with(0, 7) == Shape{7, 3, 4});
  CHECK(shape.plus(5) == Shape{2, 3, 4, 5});
  CHECK(shape.without_last() == Shape{2, 3});
  CHECK(shape.without_last(3) == Shape{});
  CHECK(shape == Shape{2, 3, 4});
  CHECK(shape != Shape{2, 3});
  CHECK(shape != Shape{2, 3, 5});
  CHECK(error_of([&] { shape.without_last(4); }) == "shape: cannot drop 4 axes of [2, 3, 4]");
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1}.plus(1)), Error);
}

TEST_CASE("broadcasting follows NumPy's rule") {
  const auto both = [](const Shape& a, const Shape& b) {
    CHECK(broadcast(a, b, "op") == broadcast(b, a, "op"));
    return broadcast(a, b, "op");
  };
  CHECK(both({8, 1, 6}, {7, 1}) == Shape{8, 7, 6});
  CHECK(both({5, 4}, {1}) == Shape{5, 4});
  CHECK(both({5, 4}, {4}) == Shape{5, 4});
  CHECK(both({15, 3, 5}, {15, 1, 5}) == Shape{15, 3, 5});
  CHECK(both({15, 3, 5}, {3, 1}) == Shape{15, 3, 5});
  CHECK(both({}, {2, 3}) == Shape{2, 3});
  CHECK(both({}, {}) == Shape{});
  CHECK(both({0, 3}, {1, 3}) == Shape{0, 3});
  CHECK(both({0}, {1}) == Shape{0});
}

TEST_CASE("shapes that do not broadcast are named with the axis") {
  CHECK(error_of([] { broadcast({3}, {4}, "add"); }) ==
        "add: shapes [3] and [4] do not broadcast (3 against 4 at axis -1)");
  CHECK(error_of([] {
          broadcast({2, 1}, {8, 4, 3}, "mul");
        }) == "mul: shapes [2, 1] and [8, 4, 3] do not broadcast (2 against 4 at axis -2)");
  CHECK(error_of([] { broadcast({0}, {3}, "add"); }) ==
        "add: shapes [0] and [3] do not broadcast (0 against 3 at axis -1)");
}

TEST_CASE("one size may be left to be worked out") {
  CHECK(infer({2, -1}, 6, "reshape") == Shape{2, 3});
  CHECK(infer({-1}, 0, "reshape") == Shape{0});
  CHECK(infer({2, 3}, 6, "reshape") == Shape{2, 3});
  CHECK(error_of([] { infer({-1, -1}, 6, "reshape"); }) == "reshape: only one size may be -1, got [-1, -1]");
  CHECK(error_of([] { infer({4, -1}, 6, "reshape"); }) == "reshape: cannot make [4, -1] of 6 elements");
  CHECK(error_of([] { infer({0, -1}, 0, "reshape"); }) == "reshape: cannot make [0, -1] of 0 elements");
  CHECK_THROWS_AS(infer({i64{1} << 40, i64{1} << 40, -1}, 6, "reshape"), Error);
}

TEST_CASE("a shape prints as a list") {
  CHECK(text_of(Shape{2, 3}) == "[2, 3]");
  CHECK(text_of(Shape{}) == "[]");
}
