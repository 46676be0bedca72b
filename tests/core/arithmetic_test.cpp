// Chapter 1. Tests of making tensors and of arithmetic on them.
#include <doctest/doctest.h>

#include <cmath>

#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

TEST_CASE("zeros, full and arange have the values and dtypes that were asked for") {
  CHECK(elements(zeros({2}, f64)) == Numbers{0, 0});
  CHECK(elements(full({2}, 2.5)) == Numbers{2.5, 2.5});
  CHECK(full({2}, 7, Dtype::i32).dtype() == Dtype::i32);
  CHECK(elements(full({2}, 7, Dtype::i32)) == Numbers{7, 7});
  CHECK(elements(arange(4)) == Numbers{0, 1, 2, 3});
  CHECK(arange(0).shape() == Shape{0});
  const Tensor large = full({300'000}, 3.0);
  CHECK(sum(large).item() == 900'000);
}

TEST_CASE("random tensors follow their generator") {
  Rng a(1), b(1);
  CHECK(same_bits(randn({10}, a), randn({10}, b)));
  CHECK(same_bits(randint(3, 9, {50}, a), randint(3, 9, {50}, b)));
  const Tensor ids = randint(3, 6, {1000}, a), u = rand_uniform({1000}, -2, 5, a);
  CHECK(max(ids.to(f32)).item() == 5);
  CHECK(max(-ids.to(f32)).item() == -3);
  CHECK(max(u).item() < 5);
  CHECK(max(-u).item() <= 2);
  CHECK(error_of([&] { randn({1}, a, Dtype::i32); }) == "randn: needs f32 or f64, got i32");
  CHECK(error_of([&] { randint(5, 5, {1}, a); }) == "integer: needs low < high, got 5 and 5");
  constexpr i64 end_of_i32 = i64{1} << 31;
  CHECK(randint(end_of_i32 - 1, end_of_i32, {1}, a).item() == end_of_i32 - 1);
  CHECK(randint(-end_of_i32, 1 - end_of_i32, {1}, a).item() == -end_of_i32);
  for (const auto& [low, high] : {std::pair{i64{0}, end_of_i32 + 1}, {-end_of_i32 - 1, i64{0}}})
    CHECK(error_of([&, low = low, high = high] { randint(low, high, {1}, a); }) ==
          "randint: the range does not fit into i32");
}

TEST_CASE("sums, differences, products and quotients broadcast their operands") {
  const Tensor a = Tensor::of<double>({2, 2}, {1, 2, 3, 4}), row = Tensor::of<double>({2}, {10, 100});
  CHECK(elements(a + row) == Numbers{11, 102, 13, 104});
  CHECK(elements(a - row) == Numbers{-9, -98, -7, -96});
  CHECK(elements(a * row) == Numbers{10, 200, 30, 400});
  CHECK(elements(row / a) == Numbers{10, 50, 10.0 / 3, 25});
  CHECK(elements(a * 0.5) == Numbers{0.5, 1, 1.5, 2});
  CHECK(elements(-a) == Numbers{-1, -2, -3, -4});
}

TEST_CASE("numbers stand on either side of an operator, and take the tensor's dtype") {
  const Tensor a = Tensor::of<double>({2}, {1, -4}), b = full({2}, 2.0);
  CHECK(elements(2.0 * a) == Numbers{2, -8});
  CHECK(elements(a / 2.0) == Numbers{0.5, -2});
  CHECK(elements(a + 1.0) == Numbers{2, -3});
  CHECK(elements(1.0 + a) == Numbers{2, -3});
  CHECK(elements(a - 0.5) == Numbers{0.5, -4.5});
  CHECK(elements(0.5 - a) == Numbers{-0.5, 4.5});
  CHECK(elements(1.0 / a) == Numbers{1, -0.25});
  for (const Tensor& y : {2.0 * b, b / 2.0, b + 1.0, 1.0 + b, b - 1.0, 1.0 - b, 1.0 / b}) CHECK(y.dtype() == f32);
  CHECK(error_of([] { arange(2) + 1.0; }) == "add: needs f32 or f64, got i32");
}

TEST_CASE("errors of arithmetic name the operation") {
  CHECK(error_of([] { full({3}, 1.0) + full({4}, 1.0); }) ==
        "add: shapes [3] and [4] do not broadcast (3 against 4 at axis -1)");
  CHECK(error_of([] { mul(full({3}, 1.0), full({3}, 1.0, f64)); }) == "mul: dtypes differ (f32 and f64)");
  CHECK(error_of([] { div(arange(2), arange(2)); }) == "div: needs f32 or f64, got i32");
  CHECK(error_of([] { scale(arange(2), 2); }) == "scale: needs f32 or f64, got i32");
}

TEST_CASE("in place, every view sees the change") {
  Tensor x = Tensor::of<double>({3}, {1, 2, 3});
  const Tensor view = x.rows(1, 3);
  add_in_place(x, Tensor::of<double>({3}, {10, 20, 30}));
  CHECK(elements(view) == Numbers{22, 33});
  scale_in_place(x, -1);
  CHECK(elements(view) == Numbers{-22, -33});
  fill(x, 5);
  CHECK(elements(view) == Numbers{5, 5});
  copy_into(x, Tensor::of<double>({3}, {7, 8, 9}));
  CHECK(elements(view) == Numbers{8, 9});
  add_in_place(x, x);
  CHECK(elements(view) == Numbers{16, 18});
}

TEST_CASE("in place, shapes and dtypes must be equal") {
  Tensor x = full({3}, 1.0);
  CHECK(error_of([&] { lerp_in_place(x, full({1}, 1.0), 0.5); }) == "lerp_in_place: shapes differ ([3] and [1])");
  CHECK(error_of([&] { add_in_place(x, full({1}, 1.0)); }) == "add_in_place: shapes differ ([3] and [1])");
  CHECK(error_of([&] { copy_into(x, full({3}, 1.0, f64)); }) == "copy_into: dtypes differ (f32 and f64)");
  CHECK(error_of([&] { add_in_place(x, Tensor()); }) == "add_in_place: needs two tensors");
  CHECK(error_of([&] { dot(Tensor(), x); }) == "dot: needs two tensors");
  CHECK(error_of([&] { dot(x, full({3, 1}, 1.0)); }) == "dot: shapes differ ([3] and [3, 1])");
}

TEST_CASE("in place, tensors must not overlap in part, since threads would read what others have written") {
  Tensor x = full({100}, 1.0), to = x.rows(1, 100), half = x.rows(0, 50);
  const Tensor from = x.rows(0, 99), other_half = x.rows(50, 100);
  const std::string rule = ": the two tensors overlap in memory without being the same";
  CHECK(error_of([&] { copy_into(to, from); }) == "copy_into" + rule);
  CHECK(error_of([&] { add_in_place(to, from); }) == "add_in_place" + rule);
  CHECK(error_of([&] { lerp_in_place(to, from, 0.5); }) == "lerp_in_place" + rule);
  add_in_place(half, other_half);
  add_in_place(x, x);
  CHECK(x.at(0) == 4);
  CHECK(x.at(99) == 2);
}

TEST_CASE("dot is the sum of the products, and 0 for empty tensors") {
  CHECK(dot(Tensor::of<float>({3}, {1, 2, 3}), Tensor::of<float>({3}, {4, -5, 6})) == 12);
  CHECK(dot(full({0}, 1.0), full({0}, 1.0)) == 0);
}

TEST_CASE("linear interpolation in place goes from y at weight 0 to x at weight 1") {
  const Tensor x = Tensor::of<double>({3}, {10, 20, -30});
  for (const double weight : {0.0, 0.25, 1.0}) {
    Tensor y = Tensor::of<double>({3}, {2, -4, 6});
    lerp_in_place(y, x, weight);
    for (i64 i = 0; i < 3; ++i)
      CHECK(y.at(i) == (1 - weight) * std::array{2.0, -4.0, 6.0}[static_cast<size_t>(i)] + weight * x.at(i));
  }
}

TEST_CASE("a tensor of whole numbers is i32, and wider integers need a dtype") {
  CHECK(full({4}, i32{1}).dtype() == Dtype::i32);
  CHECK(elements(full({2}, 16'777'217)) == Numbers{16'777'217, 16'777'217});  // f32 has no such number
  CHECK(full({4}, 1.0).dtype() == f32);
  CHECK(full({4}, 1.0F).dtype() == f32);
  CHECK(full({4}, 1, f64).dtype() == f64);
  constexpr auto compiles = [](auto value) {
    return requires { full({4}, value); };
  };
  CHECK(compiles(1));
  CHECK_FALSE(compiles(i64{1}));
  CHECK_FALSE(compiles(size_t{1}));
}

TEST_CASE("division by a number divides, and rounds once") {
  const Tensor x = normal({1000}, 3), single = x.to(f32);
  for (const double c : {3.0, 0.1, -7.3, 1e-20, 1e20}) {
    const Tensor y = x / c, z = single / c;
    i64 different = 0;
    for (i64 i = 0; i < x.count(); ++i) {
      different += y.at(i) != x.at(i) / c;
      different += z.data<float>()[i] != single.data<float>()[i] / static_cast<float>(c);
    }
    CHECK(different == 0);
  }
}

TEST_CASE("numbers beyond a dtype's range scale and divide as IEEE has it, and give no silent 0") {
  const auto in_f64 = [](double x) { return full({}, x, f64); };
  CHECK((in_f64(0) / 1e-310).item() == 0);
  CHECK((in_f64(1e-300) / 1e-310).item() == doctest::Approx(1e10).epsilon(1e-12));
  CHECK((in_f64(-1) / 1e-310).item() == -INFINITY);
  CHECK((in_f64(1e300) * 1e-310).item() * 1e10 == doctest::Approx(1).epsilon(1e-12));
  CHECK((1e-310 / in_f64(1e-300)).item() * 1e10 == doctest::Approx(1).epsilon(1e-12));
  CHECK((in_f64(1e300) / 5e-324).item() == INFINITY);
  const auto in_f32 = [](double x) { return full({}, x); };
  CHECK((in_f32(0) / 1e-39).item() == 0);
  CHECK((in_f32(1e-30) / 1e-39).item() == doctest::Approx(1e9).epsilon(1e-6));
  CHECK((in_f32(1) / 1e-39).item() == INFINITY);
  CHECK((in_f32(1e38) / -1e39).item() == doctest::Approx(-0.1).epsilon(1e-6));
  CHECK((in_f32(0) / 1e-310).item() == 0);
  CHECK((in_f32(1e38) * 1e-39).item() == doctest::Approx(0.1).epsilon(1e-6));
  CHECK((in_f32(1e-20) * 1e39).item() == doctest::Approx(1e19).epsilon(1e-6));
  CHECK((1e39 / in_f32(1e38)).item() == doctest::Approx(10).epsilon(1e-6));
  CHECK((1e-39 / in_f32(1e-30)).item() * 1e9 == doctest::Approx(1).epsilon(1e-6));
  for (const Dtype dtype : {f32, f64}) {
    const Tensor one = full({}, 1.0, dtype), none = zeros({}, dtype);
    CHECK((one / 0.0).item() == INFINITY);
    CHECK(std::isnan((none / 0.0).item()));
    CHECK((one / INFINITY).item() == 0);
    CHECK(std::isnan((one / NAN).item()));
  }
  Tensor large = full({3}, 2e38);
  scale_in_place(large, 1e-39);
  for (const double x : elements(large)) CHECK(x == doctest::Approx(0.2).epsilon(1e-6));
}

TEST_CASE("a number too small to be normal is not 0, also where the host's processor takes it for 0") {
  const Tensor tiny = full({}, 1e-300, f64), one = full({}, 1e-30), huge = full({}, 1e300, f64);
  const FlushDenormals as_the_host;
  CHECK((tiny / 1e-310).item() == doctest::Approx(1e10).epsilon(1e-12));
  CHECK((tiny / -1e-310).item() == doctest::Approx(-1e10).epsilon(1e-12));
  CHECK((huge * 5e-324).item() * 1e24 == doctest::Approx(4.94065645841246544).epsilon(1e-12));
  CHECK((1e-310 / tiny).item() * 1e10 == doctest::Approx(1).epsilon(1e-12));
  CHECK((one / 1e-310).item() == INFINITY);
  CHECK(std::isnan((zeros({}, f64) / 0.0).item()));
  CHECK(std::isnan((zeros({}, f64) / -0.0).item()));
}
