// Chapter 1. Tests of printing: the exact text.
#include <doctest/doctest.h>

#include <limits>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("numbers stand in brackets, then dtype and shape") {
  CHECK(text_of(Tensor::of<float>({3}, {1, 2.5, -3})) == "[1, 2.5, -3]  f32 [3]");
  CHECK(text_of(Tensor::of<double>({}, {0.5})) == "0.5  f64 []");
  CHECK(text_of(Tensor::of<i32>({1, 2}, {7, 8})) == "[[7, 8]]  i32 [1, 2]");
  CHECK(text_of(Tensor()) == "(no tensor)");
}

TEST_CASE("rows stand below each other") {
  CHECK(text_of(Tensor::of<i32>({2, 3}, {1, 2, 3, 4, 5, 6})) == "[[1, 2, 3],\n [4, 5, 6]]  i32 [2, 3]");
  CHECK(text_of(arange(8).reshape({2, 2, 2})) == "[[[0, 1],\n  [2, 3]],\n [[4, 5],\n  [6, 7]]]  i32 [2, 2, 2]");
}

TEST_CASE("four digits of fractions are shown, and all digits of whole numbers") {
  CHECK(text_of(Tensor::of<double>({4}, {3.14159, 123456.0, 1e-9, 2.0 / 3})) ==
        "[3.142, 1.235e+05, 1e-09, 0.6667]  f64 [4]");
  CHECK(text_of(Tensor::of<i32>({2}, {12345, -2147483647})) == "[12345, -2147483647]  i32 [2]");
}

TEST_CASE("long axes show their first and last three elements") {
  CHECK(text_of(arange(6)) == "[0, 1, 2, 3, 4, 5]  i32 [6]");
  CHECK(text_of(arange(7)) == "[0, 1, 2, ..., 4, 5, 6]  i32 [7]");
  CHECK(text_of(arange(1000)) == "[0, 1, 2, ..., 997, 998, 999]  i32 [1000]");
  CHECK(text_of(arange(8).reshape({8, 1})) == "[[0],\n [1],\n [2],\n ...,\n [5],\n [6],\n [7]]  i32 [8, 1]");
}

TEST_CASE("nothing, infinity and NaN print too") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(text_of(Tensor::empty({0})) == "[]  f32 [0]");
  CHECK(text_of(Tensor::empty({2, 0})) == "[[],\n []]  f32 [2, 0]");
  CHECK(text_of(Tensor::of<double>({2}, {infinity, -infinity})) == "[inf, -inf]  f64 [2]");
  CHECK(text_of(full({1}, std::numeric_limits<double>::quiet_NaN())).find("nan") != std::string::npos);
}

TEST_CASE("printing leaves the stream as it was") {
  std::ostringstream text;
  text << full({1}, 1.0) << ' ' << 3.14159265;
  CHECK(text.str() == "[1]  f32 [1] 3.14159");
}
