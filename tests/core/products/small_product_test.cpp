// Chapter 8. Small products against a triple loop: rows and columns left over, both orders of A, gaps between rows.
#include "core/products/small_product.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

constexpr i64 a_gap = 3, b_gap = 5, c_gap = 2;  // between the rows of each matrix

template <class T>
struct SmallMatrices {
  i64 m, n, k;
  bool transposed;  // A is stored k x m
  std::vector<T> a, b, c;

  SmallMatrices(i64 m, i64 n, i64 k, bool transposed, Rng& rng) : m(m), n(n), k(k), transposed(transposed) {
    a = products::random_values<T>((transposed ? k : m) * a_row() + 1, rng);
    b = products::random_values<T>(k * b_row() + 1, rng);
    c.assign(static_cast<size_t>(m * c_row() + 1), static_cast<T>(products::guard_value));
    for (i64 i = 0; i < m; ++i) std::fill_n(c.begin() + i * c_row(), n, T{2});
  }
  i64 a_row() const { return (transposed ? m : k) + a_gap; }
  i64 b_row() const { return n + b_gap; }
  i64 c_row() const { return n + c_gap; }
  Strided<T> left() const { return transposed ? Strided<T>{a.data(), 1, a_row()} : Strided<T>{a.data(), a_row(), 1}; }
  void multiply(bool accumulate) {
    small_product<T>(left(), {b.data(), k, n, b_row()}, {c.data(), m, n, c_row()}, accumulate);
  }
  double exact(i64 i, i64 j) const {
    double total = 0;
    for (i64 p = 0; p < k; ++p)
      total += static_cast<double>(left().data[i * left().row + p * left().column]) *
               static_cast<double>(b[static_cast<size_t>(p * b_row() + j)]);
    return total;
  }
};

// The largest error; infinite if an element outside of C was touched.
template <class T>
double worst_error(SmallMatrices<T> x, bool accumulate) {
  x.multiply(accumulate);
  double worst = 0;
  for (i64 at = 0; at < static_cast<i64>(x.c.size()); ++at) {
    const i64 i = at / x.c_row(), j = at % x.c_row();
    const double got = static_cast<double>(x.c[static_cast<size_t>(at)]);
    if (i >= x.m || j >= x.n) {
      if (got != products::guard_value) return std::numeric_limits<double>::infinity();
      continue;
    }
    worst = small::worse(worst, std::abs(got - (x.exact(i, j) + (accumulate ? 2 : 0))));
  }
  return worst;
}

}  // namespace

TEST_CASE("small products agree with a triple loop, however many rows and columns are left over by the blocks") {
  Rng rng(4);
  for (i64 m = 0; m <= 14; ++m) {
    for (const i64 n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 71, 130}) {
      for (const i64 k : {0, 1, 19}) {
        INFO(m, " ", n, " ", k);
        for (const bool flag : {false, true}) {  // both as transposed and as accumulate
          CHECK(worst_error(SmallMatrices<float>(m, n, k, flag, rng), flag) <= 1e-5);
          CHECK(worst_error(SmallMatrices<double>(m, n, k, !flag, rng), flag) <= 1e-14 * 20);
        }
      }
    }
  }
}

TEST_CASE("an element has the same bits in any block: it is the sum of its own row and column, in their order") {
  Rng rng(5);
  const auto check = [&]<class T>(T, i64 m, i64 n, i64 k) {
    SmallMatrices<T> all(m, n, k, false, rng);
    all.multiply(true);
    for (i64 i = 0; i < all.m; ++i) {
      for (i64 j = 0; j < all.n; ++j) {
        T alone{2};
        small_product<T>({all.a.data() + i * all.a_row(), all.a_row(), 1}, {all.b.data() + j, all.k, 1, all.b_row()},
                         {&alone, 1, 1}, true);
        const T in_block = all.c[static_cast<size_t>(i * all.c_row() + j)];
        REQUIRE(alone == in_block);
      }
    }
  };
  check(float{}, 13, 75, 61);
  check(double{}, 13, 75, 61);
  check(float{}, 70, 75, 300);
  check(double{}, 70, 75, 300);  // B is copied, 256 rows at a time
}

TEST_CASE("what stood in C before does not matter unless it is added to") {
  const float a = 3, b = 5;
  float c = std::nanf("");
  small_product<float>({&a, 1, 1}, {&b, 1, 1}, {&c, 1, 1}, false);
  CHECK(c == 15);
  c = std::nanf("");
  small_product<float>({&a, 1, 1}, {&b, 0, 1}, {&c, 1, 1}, false);
  CHECK(c == 0);
  small_product<float>({&a, 1, 1}, {&b, 1, 1}, {&c, 1, 1}, true);
  small_product<float>({&a, 1, 1}, {&b, 0, 1}, {&c, 1, 1}, true);
  CHECK(c == 15);
}
