// Chapter 8. What the tests of products share: products with everything about them chosen, against a triple loop.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/products/gemm.h"
#include "core/products/precision.h"
#include "core/random.h"
#include "tests/core/support.h"

namespace orrery::products {
using namespace kernels;

/// Lets BLAS compute products, or not, for as long as it lives.
class UseBlas {
 public:
  explicit UseBlas(bool wanted = true) : before_(uses_blas()) { use_blas(wanted); }
  ~UseBlas() { use_blas(before_); }
  UseBlas(const UseBlas&) = delete;
  UseBlas& operator=(const UseBlas&) = delete;

 private:
  bool before_;
};

/// Lets products round their factors to bf16 for as long as it lives.
class UseBf16 {
 public:
  UseBf16() { use_bf16(true); }
  ~UseBf16() { use_bf16(false); }
  UseBf16(const UseBf16&) = delete;
  UseBf16& operator=(const UseBf16&) = delete;
};

inline constexpr std::array every_trans{Trans::none, Trans::a, Trans::b, Trans::both};
inline constexpr double guard_value = 777;  // stands between the rows of a matrix whose stride is larger than its width

/// A product with everything about it chosen: sizes, strides, batch.
struct Case {
  i64 batch, m, n, k;
  i64 extra_a, extra_b, extra_c;  // stride minus columns
  Trans trans;
  bool accumulate;

  i64 a_rows() const { return transposes_a(trans) ? k : m; }
  i64 a_cols() const { return transposes_a(trans) ? m : k; }
  i64 b_rows() const { return transposes_b(trans) ? n : k; }
  i64 b_cols() const { return transposes_b(trans) ? k : n; }
  i64 a_step() const { return a_rows() * (a_cols() + extra_a); }
  i64 b_step() const { return b_rows() * (b_cols() + extra_b); }
  i64 c_step() const { return m * (n + extra_c) + 3; }
};

inline Case random_case(Rng& rng) {
  const auto size = [&] {
    return rng.uniform() < 0.15 ? rng.integer(0, 2) : rng.integer(1, rng.uniform() < 0.1 ? 150 : 40);
  };
  const auto extra = [&] { return rng.uniform() < 0.5 ? 0 : rng.integer(1, 9); };
  return {rng.integer(0, 4),
          size(),
          size(),
          size(),
          extra(),
          extra(),
          extra(),
          every_trans.at(static_cast<size_t>(rng.integer(0, 4))),
          rng.uniform() < 0.5};
}

template <class T> std::vector<T> random_values(i64 n, Rng& rng) {
  std::vector<T> values(static_cast<size_t>(n));
  for (T& value : values) value = static_cast<T>(2 * rng.uniform() - 1);
  return values;
}

/// Element (i, j) of the product number `x` by its definition, in double.
template <class T> double exact(const Case& s, const std::vector<T>& a, const std::vector<T>& b, i64 x, i64 i, i64 j) {
  const i64 lda = s.a_cols() + s.extra_a, ldb = s.b_cols() + s.extra_b;
  double total = 0;
  for (i64 l = 0; l < s.k; ++l) {
    const i64 at_a = x * s.a_step() + (transposes_a(s.trans) ? l * lda + i : i * lda + l);
    const i64 at_b = x * s.b_step() + (transposes_b(s.trans) ? j * ldb + l : l * ldb + j);
    total += static_cast<double>(a[static_cast<size_t>(at_a)]) * static_cast<double>(b[static_cast<size_t>(at_b)]);
  }
  return total;
}

/// The largest error of multiply(a, b, c), which gets the matrices of all products; infinite if an element outside of C
/// was touched. `batched` is false for a single product.
template <class T, class Multiply>
double error_of_multiply(const Case& s, Rng& rng, bool batched, const Multiply& multiply) {
  const i64 batch = batched ? s.batch : 1;
  const std::vector<T> a = random_values<T>(batch * s.a_step() + 1, rng),
                       b = random_values<T>(batch * s.b_step() + 1, rng);
  std::vector<T> c(static_cast<size_t>(batch * s.c_step() + 1), static_cast<T>(guard_value));
  const i64 ldc = s.n + s.extra_c;
  for (i64 x = 0; x < batch; ++x) {
    for (i64 i = 0; i < s.m; ++i) std::fill_n(c.begin() + x * s.c_step() + i * ldc, s.n, T{2});
  }
  const Mat<const T> ma{a.data(), s.a_rows(), s.a_cols(), s.a_cols() + s.extra_a};
  const Mat<const T> mb{b.data(), s.b_rows(), s.b_cols(), s.b_cols() + s.extra_b};
  const Mat<T> mc{c.data(), s.m, s.n, ldc};
  multiply(MatBatch<const T>{ma, s.a_step()}, MatBatch<const T>{mb, s.b_step()}, MatBatch<T>{mc, s.c_step()});
  double worst = 0;
  std::vector<bool> inside(c.size(), false);
  for (i64 x = 0; x < batch; ++x) {
    for (i64 i = 0; i < s.m; ++i) {
      for (i64 j = 0; j < s.n; ++j) {
        const auto at = static_cast<size_t>(x * s.c_step() + i * ldc + j);
        inside[at] = true;
        const double difference =
            std::abs(static_cast<double>(c[at]) - (exact(s, a, b, x, i, j) + (s.accumulate ? 2 : 0)));
        worst = small::worse(worst, difference);
      }
    }
  }
  for (size_t i = 0; i < c.size(); ++i) {
    if (!inside[i] && c[i] != static_cast<T>(guard_value)) worst = std::numeric_limits<double>::infinity();
  }
  return worst;
}

/// The same of gemm (one product) or gemm_batch.
template <class T> double error_of_case(const Case& s, Rng& rng, bool batched) {
  return error_of_multiply<T>(s, rng, batched, [&](const auto& a, const auto& b, const auto& c) {
    if (batched)
      gemm_batch<T>(s.batch, a, b, c, s.trans, s.accumulate);
    else
      gemm<T>(a.first, b.first, c.first, s.trans, s.accumulate);
  });
}

}  // namespace orrery::products
