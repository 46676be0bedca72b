// Chapter 4. Tests of products of tensors: shapes, transposes, batches, shared factors, and errors.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/tensor_ops.h"
#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;
using products::every_trans;
using Numbers = std::vector<double>;

namespace {

Tensor transposed(const Tensor& x) {
  std::vector<i64> order;
  for (i64 axis = 0; axis < x.rank(); ++axis) order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order);
}

// The product by its definition, one batch after another; b with two axes is shared.
Tensor naive(const Tensor& a, const Tensor& b) {
  const i64 m = a.size(-2), k = a.size(-1), n = b.size(-1), batch = a.shape().without_last(2).count();
  Tensor c = zeros(a.shape().without_last(1).plus(n), f64);
  double* out = c.write<double>();
  for (i64 x = 0; x < batch; ++x) {
    const double *first = a.data<double>() + x * m * k, *second = b.data<double>() + (b.rank() == 2 ? 0 : x * k * n);
    for (i64 i = 0; i < m; ++i) {
      for (i64 j = 0; j < n; ++j) {
        double total = 0;
        for (i64 l = 0; l < k; ++l) total += first[i * k + l] * second[l * n + j];
        out[(x * m + i) * n + j] = total;
      }
    }
  }
  return c;
}

// Infinite where shapes differ: a - b would broadcast them.
double distance(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  return a.count() == 0 ? 0 : std::sqrt(sum_of_squares(a - b));
}

}  // namespace

TEST_CASE("all transposes, without and with batches") {
  Rng rng(1);
  for (const Shape& leading : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0}, Shape{1}}) {
    const Tensor a = randn(leading.plus(4).plus(5), rng, f64), b = randn(leading.plus(5).plus(6), rng, f64);
    const Tensor expected = naive(a, b);
    for (const Trans trans : every_trans) {
      const Tensor c = matmul(transposes_a(trans) ? transposed(a) : a, transposes_b(trans) ? transposed(b) : b, trans);
      CHECK(c.shape() == expected.shape());
      CHECK(distance(c, expected) <= 1e-13);
    }
  }
}

TEST_CASE("a shared right factor, transposed or not") {
  Rng rng(2);
  const Tensor a = randn({2, 3, 4, 5}, rng, f64), b = randn({5, 7}, rng, f64);
  const Tensor expected = naive(a, b);
  CHECK(expected.shape() == Shape{2, 3, 4, 7});
  CHECK(distance(matmul(a, b), expected) <= 1e-13);
  CHECK(distance(matmul(a, transposed(b), Trans::b), expected) <= 1e-13);
}

TEST_CASE("products of sizes 0 and 1 have their shapes, and are 0 where nothing is added") {
  CHECK(elements(matmul(full({2, 0}, 1.0), full({0, 2}, 1.0))) == Numbers{0, 0, 0, 0});
  CHECK(matmul(full({0, 3}, 1.0), full({3, 2}, 1.0)).shape() == Shape{0, 2});
  CHECK(matmul(full({2, 3}, 1.0), full({3, 0}, 1.0)).shape() == Shape{2, 0});
  CHECK(elements(matmul(full({3, 2, 0}, 1.0), full({3, 0, 1}, 1.0))) == Numbers{0, 0, 0, 0, 0, 0});
  CHECK(elements(matmul(full({1, 1}, 3.0), full({1, 1}, 4.0))) == Numbers{12});
}

TEST_CASE("a result is replaced, or added to") {
  Rng rng(3);
  const Tensor a = randn({2, 3, 4}, rng, f64), b = randn({2, 4, 5}, rng, f64);
  Tensor c = full({2, 3, 5}, 10.0, f64);
  const u64 version = c.version();
  matmul_into(c, a, b, Trans::none, true);
  CHECK(c.version() > version);
  CHECK(distance(c, naive(a, b) + full({}, 10.0, f64)) <= 1e-13);
  matmul_into(c, a, b, Trans::none, false);
  CHECK(distance(c, naive(a, b)) <= 1e-13);
}

TEST_CASE("shapes that do not fit are errors that say the sizes") {
  const auto error = [](const Shape& a, const Shape& b, Trans trans) {
    return error_of([&] { matmul(full(a, 1.0), full(b, 1.0), trans); });
  };
  CHECK(error({32, 10, 64}, {128, 512}, Trans::none) == "matmul: inner sizes differ (64 != 128)");
  CHECK(error({2, 3}, {3, 4}, Trans::a) == "matmul: inner sizes differ (2 != 3)");
  CHECK(error({2, 3}, {3, 4}, Trans::b) == "matmul: inner sizes differ (3 != 4)");
  CHECK(error({3}, {3, 4}, Trans::none) == "matmul: needs matrices, got shapes [3] and [3, 4]");
  CHECK(error({3, 4}, {4}, Trans::none) == "matmul: needs matrices, got shapes [3, 4] and [4]");
  CHECK(error({2, 3, 4}, {5, 4, 3}, Trans::none) == "matmul: leading axes differ ([2] and [5])");
  CHECK(error({3, 4}, {5, 4, 3}, Trans::none) == "matmul: leading axes differ ([] and [5])");
  CHECK(error({2, 4, 3}, {4, 3}, Trans::a) ==
        "matmul: leading axes differ ([2] and []); only an a that is not transposed can share one b");
  CHECK(error({2, 3, 4}, {3, 3, 5}, Trans::a) == "matmul: leading axes differ ([2] and [3])");
}

TEST_CASE("dtypes and the result must fit") {
  Tensor c = full({2, 2}, 0.0);
  CHECK(error_of([] { matmul(full({2, 2}, 1.0), full({2, 2}, 1.0, f64)); }) == "matmul: dtypes differ (f32 and f64)");
  CHECK(error_of([&] {
          matmul_into(c, full({2, 2}, 1.0, f64), full({2, 2}, 1.0, f64), Trans::none, false);
        }) == "matmul: the result is f32, needs f64");
  CHECK(error_of([&] {
          matmul_into(c, full({2, 3}, 1.0), full({3, 4}, 1.0), Trans::none, false);
        }) == "matmul: the result has shape [2, 2], needs [2, 4]");
  CHECK(error_of([] {
          matmul(full({2, 2}, 1, Dtype::i32), full({2, 2}, 1, Dtype::i32));
        }) == "matmul: needs f32 or f64, got i32");
}

TEST_CASE("a result that shares elements with a factor is an error; other rows of the same memory are not") {
  const std::string rule = "matmul: the result must not share memory with a factor";
  Tensor all = full({6, 2}, 1.0), c = all.rows(2, 4);
  const Tensor other = full({2, 2}, 1.0);
  CHECK(error_of([&] { matmul_into(c, c, other, Trans::none, false); }) == rule);
  CHECK(error_of([&] { matmul_into(c, other, all.rows(1, 3), Trans::none, false); }) == rule);
  matmul_into(c, all.rows(0, 2), all.rows(4, 6), Trans::none, false);
  CHECK(elements(all) == Numbers{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1});
}
