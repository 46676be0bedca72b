// Chapter 8. Tests of reductions: exact sums, every set of axes, NaN, sizes of 0, equal bits for any threads.
#include "core/kernels/reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;
using Numbers = std::vector<double>;

namespace {

const double nan_value = std::numeric_limits<double>::quiet_NaN();

// Which element of the reduced tensor (with kept axes) element number i of x belongs to.
i64 reduced_index(const Shape& shape, const Shape& kept, i64 i) {
  i64 position = 0, stride = 1;
  for (int axis = 1; axis <= shape.rank(); ++axis) {
    const i64 index = i % shape[-axis];
    i /= shape[-axis];
    if (kept[-axis] != 1) position += index * stride;
    stride *= kept[-axis];
  }
  return position;
}

std::vector<Axes> axis_sets() {
  return {{}, {0}, {1}, {2}, {3}, {0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}, {0, 1, 3}, {-1, -3}};
}

}  // namespace

TEST_CASE("promise 14: twenty million ones add up to twenty million") {
  CHECK(sum(full({20'000'000}, 1.0)).item() == 20'000'000.0);
}

TEST_CASE("promise 14: the sum of twenty million uniform numbers agrees with double to 1e-7") {
  Rng rng(1);
  const Tensor x = rand_uniform({20'000'000}, 0, 1, rng);
  double exact = 0;
  for (i64 i = 0; i < x.count(); ++i) exact += static_cast<double>(x.data<float>()[i]);
  CHECK(std::abs(sum(x).item() - exact) <= 1e-7 * exact);
}

TEST_CASE("long columns add up to within 2e-6, and small whole numbers exactly") {
  CHECK(elements(sum(full({2'000'000, 3}, 1.0), {0})) == Numbers{2e6, 2e6, 2e6});
  Rng rng(2);
  const Tensor x = rand_uniform({200'000, 2}, 0, 1, rng), wide = x.to(f64);
  const Tensor column = sum(x, {0}), exact = sum(wide, {0});
  for (i64 i = 0; i < 2; ++i) CHECK(std::abs(column.at(i) - exact.at(i)) <= 2e-6 * exact.at(i));
}

TEST_CASE("a matrix with many columns is summed as its blocks of columns are, with equal bits for any threads") {
  constexpr i64 rows = 600, columns = 2 * column_block + 37;
  Rng rng(7);
  const Tensor x = randint(-100, 100, {rows, columns}, rng).to(f32), total = sum(x, {0});  // without rounding
  for (i64 begin = 0; begin < columns; begin += column_block) {
    const i64 end = std::min(columns, begin + column_block);
    CHECK(same_bits(total.rows(begin, end), sum(slice(x, 1, begin, end), {0})));
  }
  const Tensor fractions = randn({rows, columns}, rng);
  CHECK(same_for_any_threads([&] { return sum(fractions, {0}); }));
}

TEST_CASE("every set of axes, against the definition") {
  Rng rng(3);
  const Tensor x = randn({3, 4, 5, 2}, rng, f64);
  for (const Axes& axes : axis_sets()) {
    const Tensor total = sum(x, axes, true), largest = max(x, axes, true);
    Numbers sums(static_cast<size_t>(total.count()), 0), maxima(sums.size(), -1e9);
    for (i64 i = 0; i < x.count(); ++i) {
      const auto at = static_cast<size_t>(reduced_index(x.shape(), total.shape(), i));
      sums[at] += x.at(i);
      maxima[at] = std::max(maxima[at], x.at(i));
    }
    for (i64 i = 0; i < total.count(); ++i)
      CHECK(total.at(i) == doctest::Approx(sums[static_cast<size_t>(i)]).epsilon(1e-12));
    CHECK(elements(largest) == maxima);
    const double n = static_cast<double>(x.count() / total.count());
    const Tensor average = mean(x, axes);
    CHECK(average.shape() == reduced_shape(x.shape(), axes, false, "mean"));
    for (i64 i = 0; i < total.count(); ++i) CHECK(average.at(i) == total.at(i) / n);
  }
}

TEST_CASE("strips are added up one after another in double, whatever the number of columns") {
  Rng rng(4);
  for (const i64 columns : {1, 7, 16, 17, 40, 300}) {
    for (const i64 matrices : {1, 3}) {
      constexpr i64 strips = 37;
      const Tensor partial = randn({matrices * strips, columns}, rng), result = combined_strips(partial, matrices);
      for (i64 i = 0; i < matrices * columns; ++i) {
        double total = 0;
        for (i64 s = 0; s < strips; ++s) total += partial.at((i / columns * strips + s) * columns + i % columns);
        REQUIRE(result.at(i) == static_cast<double>(static_cast<float>(total)));
      }
    }
  }
}

TEST_CASE("reduced axes are dropped, or kept with size 1") {
  CHECK(reduced_shape({3, 4, 5}, {}, false, "sum") == Shape{});
  CHECK(reduced_shape({3, 4, 5}, {}, true, "sum") == Shape{1, 1, 1});
  CHECK(reduced_shape({3, 4, 5}, {-1}, false, "sum") == Shape{3, 4});
  CHECK(reduced_shape({3, 4, 5}, {0, 2}, true, "sum") == Shape{1, 4, 1});
  CHECK(error_of([] { reduced_shape({3, 4}, {2}, false, "sum"); }) == "sum: axis 2 is out of range for shape [3, 4]");
  CHECK(error_of([] { reduced_shape({3, 4}, {1, -1}, false, "sum"); }) == "sum: axis -1 is named twice");
}

TEST_CASE("a result never shares the memory of its input") {
  const Tensor x = full({}, 3.0), y = full({2}, 3.0);
  CHECK_FALSE(sum(x).shares_memory_with(x));
  CHECK_FALSE(max(x).shares_memory_with(x));
  CHECK_FALSE(sum(y, {0}).shares_memory_with(y));
}

TEST_CASE("sums of nothing are 0, means of nothing NaN, maxima of nothing an error") {
  CHECK(sum(full({0}, 1.0)).item() == 0);
  CHECK(elements(sum(full({0, 3}, 1.0), {0})) == Numbers{0, 0, 0});
  CHECK(elements(sum(full({3, 0}, 1.0), {1})) == Numbers{0, 0, 0});
  CHECK(sum(full({100'000, 0}, 1.0), {0}).shape() == Shape{0});
  CHECK(sum(full({3, 5, 0}, 1.0), {1}).shape() == Shape{3, 0});
  CHECK(std::isnan(mean(full({0}, 1.0)).item()));
  CHECK(mean(full({2, 8}, 3e38)).item() == static_cast<double>(3e38F));  // its sum overflows
  CHECK(elements(mean(full({2, 4}, 1.5e308, f64), {0})) == Numbers(4, 1.5e308));
  CHECK(mean(vector_of({1, INFINITY})).item() == INFINITY);
  CHECK(max(full({3, 0}, 1.0), {0}).shape() == Shape{0});
  CHECK(error_of([] { max(full({0, 3}, 1.0), {0}); }) == "max: has no elements to choose from, shape [0, 3]");
}

TEST_CASE("a mean that is not finite, or whose sum overflows, leaves the bits of the others") {
  Rng rng(1);
  for (const Dtype dtype : {f32, f64}) {
    Tensor x = rand_uniform({40, 7}, 0.5, 1, rng, dtype);
    const Tensor before = mean(x, {1});
    x(1, 3) = nan_value;
    x(2, 0) = INFINITY;
    const double largest = dtype == f32 ? 3e38 : 1.5e308;
    for (i64 i = 0; i < 7; ++i) x(3, i) = largest;
    const Tensor after = mean(x, {1});
    CHECK(same_bits(before.rows(0, 1), after.rows(0, 1)));
    CHECK(same_bits(before.rows(4, 40), after.rows(4, 40)));
    CHECK(std::isnan(after.at(1)));
    CHECK(after.at(2) == INFINITY);
    CHECK(after.at(3) == doctest::Approx(largest).epsilon(1e-6));
  }
}

TEST_CASE("whole numbers are refused, a single one too") {
  for (const Shape& shape : {Shape{}, Shape{3}}) {
    const Tensor x = full(shape, 2, Dtype::i32);
    CHECK(error_of([&] { sum(x); }) == "sum: needs f32 or f64, got i32");
    CHECK(error_of([&] { mean(x); }) == "sum: needs f32 or f64, got i32");
    CHECK(error_of([&] { max(x); }) == "max: needs f32 or f64, got i32");
  }
}

TEST_CASE("NaN wins every maximum") {
  const Tensor x = Tensor::of<double>({3, 3}, {1, nan_value, 2, nan_value, 5, 6, 7, 8, 9});
  const Tensor rows = max(x, {1}), columns = max(x, {0});
  CHECK(std::isnan(rows.at(0)));
  CHECK(std::isnan(rows.at(1)));
  CHECK(rows.at(2) == 9);
  CHECK(std::isnan(columns.at(0)));
  CHECK(std::isnan(columns.at(1)));
  CHECK(columns.at(2) == 9);
  CHECK(std::isnan(sum(x, {1}).at(0)));
}

namespace {

// Numbers of which many are equal; a few are NaN, infinite or 0 of either sign.
template <class T> Tensor with_ties(const Shape& shape, u64 seed) {
  Rng rng(seed);
  std::vector<T> x(static_cast<size_t>(shape.count()));
  const bool special = seed % 2 == 0;
  for (T& number : x) {
    const i64 kind = rng.integer(0, 40);
    number = static_cast<T>(rng.integer(-5, seed % 3 == 0 ? 1 : 5)) * T{0.5};
    if (kind < 2) number = -T{0};
    if (kind == 2 && special) number = static_cast<T>(rng.integer(0, 2) == 0 ? nan_value : -nan_value);
    if (kind == 3 && special) number = -std::numeric_limits<T>::infinity();
  }
  return Tensor::of<T>(shape, x);
}

// The maxima, or minima, over the middle axis of [outer, n, inner], one number after another: the first of equal ones,
// or NaNs.
template <class T> Tensor extreme_by_loops(const Tensor& x, bool smallest) {
  const i64 outer = x.size(0), n = x.size(1), inner = x.size(2);
  Tensor y = Tensor::empty({outer, inner}, x.dtype());
  for (i64 o = 0; o < outer; ++o) {
    for (i64 i = 0; i < inner; ++i) {
      const T* from = x.data<T>() + o * n * inner + i;
      T extreme = from[0];
      for (i64 j = 1; j < n; ++j) {
        const T next = from[j * inner];
        if (extreme == extreme && !(smallest ? next >= extreme : next <= extreme)) extreme = next;
      }
      y.write<T>()[o * inner + i] = extreme;
    }
  }
  return y;
}

template <class T> void check_maxima() {
  u64 seed = 1;
  for (const i64 n : {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100, 257, 1025, 20'001}) {
    for (const i64 inner : {1, 2, 3, 5, 16, 63, 64, 65, 1500}) {
      for (const i64 outer : {1, 3, 37}) {
        if (outer * n * inner > 200'000) continue;
        const Tensor x = with_ties<T>({outer, n, inner}, seed++);
        CAPTURE(x.shape());
        CHECK(same_bits(max(x, {1}), extreme_by_loops<T>(x, false)));
        CHECK(same_bits(min(x, {1}), extreme_by_loops<T>(x, true)));
        if (inner > 1) continue;
        const Tensor chosen = argmax(x.reshape({outer, n}));
        for (i64 o = 0; o < outer; ++o) {
          const T* row = x.data<T>() + o * n;
          CHECK(chosen.at(o) == static_cast<double>(std::max_element(row, row + n) - row));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE(
    "maxima and minima of every layout have the bits of a plain loop: the first of equal numbers, 0 of either sign, "
    "NaN") {
  check_maxima<float>();
  check_maxima<double>();
}

TEST_CASE("sums of narrow rows have the bits of chunked_sum, and maxima and sums those of any number of threads") {
  Rng rng(8);
  for (const Dtype dtype : {f32, f64}) {
    for (i64 n = 1; n <= 20; ++n) {
      const Tensor x = randn({1003, n}, rng, dtype), y = sum(x, {1});
      dispatch_floating(dtype, "test", [&](auto t) {
        using T = decltype(t);
        bool equal = true;
        for (i64 row = 0; row < x.size(0); ++row) {
          const T* from = x.data<T>() + row * n;
          equal = equal && y.data<T>()[row] == static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return from[i]; }));
        }
        CHECK(equal);
      });
    }
    const Tensor x = randn({40'000, 3}, rng, dtype);
    CHECK(same_for_any_threads([&] { return sum(x, {1}); }));
    CHECK(same_for_any_threads([&] { return max(x, {1}); }));
    CHECK(same_for_any_threads([&] { return max(x, {0}); }));
    CHECK(same_for_any_threads([&] { return max(x); }));
  }
  CHECK_FALSE(std::signbit(sum(full({2, 3}, -0.0), {1}).at(0)));
}

TEST_CASE("argmax is the first of the largest") {
  const Tensor x = Tensor::of<float>({2, 4}, {1, 3, 3, 2, -1, -5, -2, -1});
  CHECK(argmax(x).dtype() == Dtype::i32);
  CHECK(elements(argmax(x)) == Numbers{1, 0});
  CHECK(argmax(full({0, 4}, 1.0)).shape() == Shape{0});
  CHECK(argmax(vector_of({1, nan_value, 2})).item() == 2);  // NaN counts in the first place alone
  CHECK(argmax(vector_of({nan_value, 1, 2})).item() == 0);
  CHECK(error_of([] { argmax(full({2, 0}, 1.0)); }) == "argmax: needs a last axis with elements, has shape [2, 0]");
  CHECK(error_of([] { argmax(Tensor()); }) == "argmax: the tensor is not defined");
  CHECK(error_of([] { sum(Tensor(), {0}); }) == "sum: the tensor is not defined");
}

TEST_CASE("sum_to undoes broadcasting") {
  Rng rng(4);
  const Shape shape{2, 3, 4};
  const Tensor x = randn(shape, rng, f64);
  for (const Shape& target :
       {Shape{2, 3, 4}, Shape{3, 4}, Shape{1, 4}, Shape{4}, Shape{1}, Shape{}, Shape{2, 1, 4}, Shape{2, 1, 1}}) {
    const Tensor y = randn(target, rng, f64), summed = sum_to(x, target);
    REQUIRE(summed.shape() == target);
    // <x, broadcast y> = <sum_to x, y>
    CHECK(dot(x, broadcast_to(y, shape)) == doctest::Approx(dot(summed, y)).epsilon(1e-12));
  }
  CHECK(sum_to(x, shape).shares_memory_with(x));
  CHECK(error_of([&] { sum_to(x, {5}); }) == "sum_to: cannot sum [2, 3, 4] down to [5]");
  CHECK(error_of([&] { sum_to(x, {1, 2, 3, 4}); }) == "sum_to: cannot sum [2, 3, 4] down to [1, 2, 3, 4]");
}

TEST_CASE("sum of squares and dot product work in double") {
  CHECK(error_of([] { sum_of_squares(full({3}, 1.0), 1, 4); }) == "sum_of_squares: [1, 4) is out of range for [3]");
  CHECK(error_of([] { all_finite(full({3}, 1.0), 1, 4); }) == "all_finite: [1, 4) is out of range for [3]");
  CHECK(error_of([] { all_finite(full({3}, 1.0), -1, 2); }) == "all_finite: [-1, 2) is out of range for [3]");
  const Tensor x = full({100'000}, 0.1);
  const double tenth = static_cast<double>(0.1F);
  CHECK(sum_of_squares(x) == doctest::Approx(1e5 * tenth * tenth).epsilon(1e-13));
  CHECK(dot(x, x) == sum_of_squares(x));
  CHECK(same_for_any_threads([&] { return full({}, sum_of_squares(x), f64); }));
}

namespace {

// As reduce.h says it: chunks of 4,096, in each 16 lanes, which are added pairwise in double.
template <class T> double sum_by_definition(i64 n, const T* x) {
  double total = 0;
  for (i64 begin = 0; begin < n; begin += 4096) {
    T lane[16] = {};
    for (i64 i = begin; i < std::min(n, begin + 4096); ++i) lane[i % 16] += x[i];
    double sum[16];
    std::copy_n(lane, 16, sum);
    for (int half = 8; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) sum[k] += sum[k + half];
    total += sum[0];
  }
  return total;
}

}  // namespace

TEST_CASE("chunked sums have the bits of their definition, alone, two in one pass, and shared among threads") {
  const auto check = [](auto t) {
    using T = decltype(t);
    Rng rng(5);
    const Tensor x = randn({100'003}, rng, dtype_of<T>);
    const T* data = x.data<T>();
    for (const i64 n : {0, 1, 15, 16, 17, 31, 4095, 4096, 4097, 4113, 100'003}) {
      const double wanted = sum_by_definition(n, data);
      CHECK(chunked_sum<T>(n, [=](i64 i) { return data[i]; }) == wanted);
      CHECK(parallel_sum<T>(n, [=](i64 i) { return data[i]; }) == wanted);
      Tensor y = x.clone();
      T* of_y = y.write<T>();
      i64 fetched = 0;
      const auto sums = chunked_sums<T>(
          n, [&](i64) { ++fetched; }, [=](i64 i) { return of_y[i]; }, [=](i64 i) { return of_y[i] = -data[i]; });
      CHECK(sums[0] == wanted);
      CHECK(sums[1] == -wanted);
      CHECK((n == 0 || of_y[n - 1] == -data[n - 1]));
      CHECK(fetched == n / 4096 * 256 + n % 4096 / 16);
    }
  };
  check(float{});
  check(double{});
}
