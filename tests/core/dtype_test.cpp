// Chapter 1. Tests of element types: names, sizes, and the step from the tag to a C++ type.
#include "core/dtype.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

static_assert(dtype_of<float> == f32 && dtype_of<double> == f64 && dtype_of<i32> == Dtype::i32);
static_assert(bytes_of(f32) == 4 && bytes_of(f64) == 8 && bytes_of(Dtype::i32) == 4);
static_assert(is_floating(f32) && is_floating(f64) && !is_floating(Dtype::i32));

TEST_CASE("element types have names") {
  CHECK(text_of(f32) == "f32");
  CHECK(text_of(f64) == "f64");
  CHECK(text_of(Dtype::i32) == "i32");
}

TEST_CASE("dispatch calls the kernel with the type behind the tag") {
  const auto size_of = [](auto element) { return sizeof(element); };
  CHECK(dispatch(f32, size_of) == sizeof(float));
  CHECK(dispatch(f64, size_of) == sizeof(double));
  CHECK(dispatch(Dtype::i32, [](auto element) { return std::is_same_v<decltype(element), i32>; }));
  CHECK(dispatch_floating(f32, "op", size_of) == sizeof(float));
  CHECK(dispatch_floating(f64, "op", size_of) == sizeof(double));
}

TEST_CASE("token ids are refused where numbers are needed") {
  CHECK(error_of([] { dispatch_floating(Dtype::i32, "softmax", [](auto) {}); }) ==
        "softmax: needs f32 or f64, got i32");
}
