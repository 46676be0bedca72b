// Chapter 1. Tests of Tensor: elements, views, versions, ownership, conversion, printing; of shapes and element types.
#include "core/tensor.h"

#include <doctest/doctest.h>

#include <limits>
#include <new>

#include "autograd/variable.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

TEST_CASE("elements lie in row order") {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(x.dtype() == f32);
  CHECK(x.rank() == 2);
  CHECK(x.count() == 6);
  CHECK(x.bytes() == 24);
  CHECK(x.size(-1) == 3);
  CHECK(x.data<float>()[1 * 3 + 2] == 6);
  CHECK(x.at(4) == 5);
  CHECK(Tensor::of<double>({}, {7}).item() == 7);
  CHECK(Tensor::of<i32>({2}, {3, 4}).at(1) == 4);
}

TEST_CASE("wrong counts, types and indices are errors") {
  const Tensor x = Tensor::of<float>({2}, {1, 2});
  CHECK(error_of([] { Tensor::of<float>({3}, {1, 2}); }) == "tensor: shape [3] needs 3 elements, got 2");
  CHECK(error_of([&] { x.data<double>(); }) == "tensor: holds f32, was read as f64");
  CHECK(error_of([&] { x.at(2); }) == "tensor: element 2 is out of range for shape [2]");
  CHECK(error_of([&] { x.at(-1); }) == "tensor: element -1 is out of range for shape [2]");
  CHECK(error_of([&] { x.item(); }) == "item: needs exactly one element, has shape [2]");
  CHECK(error_of([] { Tensor().item(); }) == "item: the tensor is not defined");
  CHECK(error_of([] { Tensor().at(0); }) == "tensor: is not defined");
  CHECK(error_of([] { Tensor().set(0, 1); }) == "tensor: is not defined");
  CHECK(error_of([] { Tensor()(0); }) == "tensor: is not defined");
  CHECK(error_of([] { Tensor().rows(0, 0); }) == "rows: needs at least one axis");
  CHECK(error_of([] { Tensor().data<float>(); }) == "tensor: is not defined");
  CHECK(error_of([] { Tensor().write<float>(); }) == "tensor: is not defined");
  CHECK(error_of([] { Tensor::empty({-1}); }) == "tensor: cannot have shape [-1]");
  CHECK(error_of([] { Tensor::empty({-1, -1}); }) == "tensor: cannot have shape [-1, -1]");
  CHECK(error_of([] { Tensor::empty({i64{1} << 62}); }) == "tensor: cannot have shape [4611686018427387904]");
}

TEST_CASE("a number that i32 cannot hold is an error") {
  Tensor x = full({2}, -2147483648.0, Dtype::i32);
  CHECK(x.at(0) == -2147483648.0);
  x(0) = 2147483647.5;
  CHECK(x.at(0) == 2147483647);
  for (const double value : {2147483648.0, -2147483649.0, 1e300, double{INFINITY}, double{NAN}}) {
    CAPTURE(value);
    CHECK(small::contains(error_of([&] { x(0) = value; }), " does not fit into i32"));
    CHECK(small::contains(error_of([&] { full({1}, value, Dtype::i32); }), " does not fit into i32"));
    CHECK(
        small::contains(error_of([&] { Tensor::of<double>({1}, {value}).to(Dtype::i32); }), " does not fit into i32"));
  }
  CHECK(error_of([] { arange((i64{1} << 31) + 1); }) == "arange: its numbers do not fit into i32: 2147483649");
}

TEST_CASE("reshape is a view, with one size worked out") {
  Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor y = x.reshape({3, -1});
  CHECK(y.shape() == Shape{3, 2});
  CHECK(y.shares_memory_with(x));
  y.write<float>()[5] = 60;
  CHECK(x.at(5) == 60);
  CHECK(error_of([&] { x.reshape({4, 2}); }) == "reshape: cannot make [4, 2] of [2, 3]");
  CHECK(error_of([&] { x.reshape({4, -1}); }) == "reshape: cannot make [4, -1] of 6 elements");
  CHECK(error_of([&] { Tensor().reshape({1}); }) == "reshape: the tensor is not defined");
}

TEST_CASE("rows are a view, views of views too") {
  Tensor x = Tensor::of<i32>({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  Tensor middle = x.rows(1, 4).rows(1, 2);
  CHECK(middle.shape() == Shape{1, 2});
  CHECK(elements(middle) == Numbers{4, 5});
  middle.write<i32>()[0] = 40;
  CHECK(x.at(4) == 40);
  CHECK(x.rows(2, 2).count() == 0);
  CHECK(Tensor::empty({0, 3}).rows(0, 0).shape() == Shape{0, 3});
  CHECK(error_of([&] { x.rows(1, 5); }) == "rows: [1, 5) is out of range for [4, 2]");
  CHECK(error_of([&] { x.rows(3, 2); }) == "rows: [3, 2) is out of range for [4, 2]");
  CHECK(error_of([&] { full({}, 1.0).rows(0, 0); }) == "rows: needs at least one axis");
}

TEST_CASE("versions count changes of the memory, whichever view made them") {
  Tensor x = full({4, 2}, 1.0);
  const u64 before = x.version();
  Tensor view = x.rows(0, 1), copy = x.clone();
  fill(view, 2.0);
  CHECK(x.version() == before + 1);
  CHECK(view.version() == x.version());
  fill(copy, 3.0);
  CHECK(x.version() == before + 1);
  CHECK(x.at(0) == 2);
  CHECK(x.at(2) == 1);
}

TEST_CASE("a tensor knows whether it alone owns its memory") {
  const Tensor x = full({4}, 1.0);
  CHECK(x.sole_owner());
  {
    const Tensor view = x.rows(0, 2);
    CHECK_FALSE(x.sole_owner());
    CHECK_FALSE(view.sole_owner());
  }
  CHECK(x.sole_owner());
  CHECK_FALSE(x.shares_memory_with(x.clone()));
  CHECK_FALSE(Tensor().shares_memory_with(Tensor()));
  CHECK(x.overlaps(x));
  CHECK_FALSE(x.overlaps(x.clone()));
  CHECK_FALSE(Tensor().overlaps(Tensor()));
}

TEST_CASE("conversion rounds to the new type, and shares memory where nothing is to do") {
  const Tensor x = Tensor::of<double>({3}, {1.9, -1.9, 0.1});
  CHECK(x.to(f64).shares_memory_with(x));
  CHECK(elements(x.to(Dtype::i32)) == Numbers{1, -1, 0});
  CHECK(x.to(f32).at(2) == static_cast<double>(0.1F));
  CHECK(elements(Tensor::of<i32>({2}, {3, -4}).to(f64)) == Numbers{3, -4});
}

TEST_CASE("large tensors are cloned and converted whole") {
  Rng rng(1);
  const Tensor x = randn({300'001}, rng, f64);
  CHECK(same_bits(x, x.clone()));
  const Tensor y = x.to(f32);
  bool equal = true;
  for (i64 i = 0; i < x.count(); ++i) equal = equal && y.data<float>()[i] == static_cast<float>(x.data<double>()[i]);
  CHECK(equal);
}

TEST_CASE("same_bits compares shape, dtype and every bit") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(same_bits(full({2}, nan), full({2}, nan)));
  CHECK_FALSE(same_bits(full({2}, 0.0), full({2}, -0.0)));
  CHECK_FALSE(same_bits(full({2}, 1.0), full({1, 2}, 1.0)));
  CHECK_FALSE(same_bits(full({2}, 1.0), full({2}, 1.0, f64)));
  CHECK(same_bits(Tensor(), Tensor()));
  CHECK_FALSE(same_bits(Tensor(), full({}, 0.0)));
  CHECK(same_bits(Tensor::empty({0, 2}), Tensor::empty({0, 2})));
}

TEST_CASE("the version of an undefined tensor is an error") {
  CHECK(error_of([] { (void)Tensor().version(); }) == "tensor: is not defined");
}

TEST_CASE("dims names the axes and checks the rank") {
  const auto [B, T] = dims<2>(full({3, 5}, 1.0), "x");
  CHECK(B == 3);
  CHECK(T == 5);
  CHECK(error_of([] { dims<3>(full({3, 5}, 1.0), "x"); }) == "x: needs 3 axes, has shape [3, 5]");
  CHECK(error_of([] { dims<3>(Tensor(), "memory"); }) == "memory: is not defined");
}

TEST_CASE("memory is aligned to 64 bytes, also for no elements at all; a single number stands in its storage") {
  for (const i64 n : {0, 2, 7, 64, 1000}) {
    const Tensor x = Tensor::empty({n});
    CHECK(reinterpret_cast<std::uintptr_t>(x.data<float>()) % 64 == 0);
  }
}

TEST_CASE("an element can be copied to another one") {
  Tensor x = Tensor::of<double>({2, 2}, {1, 2, 3, 4});
  x(0, 1) = x(1, 0);
  CHECK(x(0, 1) == 3);
  CHECK(x(1, 0) == 3);
  const Tensor y = Tensor::of<double>({1}, {7});
  x(1, 1) = y(0);
  CHECK(x(1, 1) == 7);
}

TEST_CASE("x(i, j) reads and writes one element of any dtype") {
  Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor before = x;  // the same memory
  CHECK(before(0, 0) == 1);
  CHECK(before(1, 2) == 6);
  CHECK(before(-1, -3) == 4);
  const u64 version = x.version();
  x(0, -1) = 2.5;
  CHECK(x(0, 2) == 2.5);
  CHECK(before(0, 2) == 2.5);
  CHECK(x.version() == version + 1);
  Tensor ids = zeros({2}, Dtype::i32), one = zeros({}, f64);
  ids(1) = 9;
  ids(1) -= 2;
  one() = 0.1;
  CHECK(ids(1) == 7);
  x(0, -1) += 0.25;
  x(0, 2) -= 2;
  CHECK(before(0, 2) == 0.75);
  CHECK(x.version() == version + 3);
  x(0, 2) *= 6;
  x(0, 2) /= -2;
  CHECK(before(0, 2) == -2.25);
  CHECK(x.version() == version + 5);
  CHECK(one.item() == 0.1);
  CHECK(error_of([&] { (void)before(0); }) == "tensor: an element of shape [2, 3] needs 2 indices, got 1");
  CHECK(error_of([&] { (void)before(0, 3); }) == "tensor: index 3 is out of range for axis 1 of shape [2, 3]");
  CHECK(error_of([&] { x(-3, 0) = 1; }) == "tensor: index -3 is out of range for axis 0 of shape [2, 3]");
}

TEST_CASE("a size that no machine has memory for is an error of one line, with what was asked and its bytes") {
  CHECK(error_of([] {
          Tensor::empty({i64{1} << 40, 1 << 10}, f64);
        }) ==
        "tensor: shape [1099511627776, 1024] of f64 takes 9007199254740992 bytes, more than the system can provide");
}

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
