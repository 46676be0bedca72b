// Chapter 8. Promise 5: products against a triple loop, NaN that neither leaks nor hides, also by BLAS's kernels.
#include <array>
#include <cmath>
#include <limits>

#include "core/products/blas.h"
#include "core/products/gemm.h"
#include "tests/core/products.h"
#include "tests/promises/rerun.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::products;

namespace {

constexpr int random_products = 1546;

template <class T> constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();

// What is wrong with the operands of a product.
enum class PoisonedPart {
  old_result,        // C is NaN and is to be replaced
  between_rows,      // NaN stands in the memory between the rows of A, B and C
  row_of_a,          // one row of op(A) is NaN
  column_of_b,       // one column of op(B) is NaN
  infinity_by_zero,  // A is 0 and one column of op(B) infinite
  element_of_c,      // one element of C is NaN and is added to
};
constexpr std::array every_poison{PoisonedPart::old_result,       PoisonedPart::between_rows,
                                  PoisonedPart::row_of_a,         PoisonedPart::column_of_b,
                                  PoisonedPart::infinity_by_zero, PoisonedPart::element_of_c};

struct Size {
  i64 m, n, k;
};
constexpr std::array<Size, 13> sizes{{{1, 1, 1},
                                      {1, 9, 5},
                                      {9, 1, 5},
                                      {7, 8, 9},
                                      {16, 16, 16},
                                      {17, 33, 5},
                                      {3, 64, 100},
                                      {64, 3, 100},
                                      {31, 31, 1},
                                      {100, 40, 17},
                                      {300, 40, 30},
                                      {40, 300, 30},
                                      {65, 67, 64}}};

// A matrix in memory of its own with three elements between its rows.
template <class T> struct Padded {
  static constexpr i64 gap = 3;
  i64 rows, cols;
  std::vector<T> memory;
  Padded(i64 rows, i64 cols, T value, T between)
      : rows(rows), cols(cols), memory(static_cast<size_t>(rows * (cols + gap)), between) {
    for (i64 i = 0; i < rows; ++i) {
      for (i64 j = 0; j < cols; ++j) at(i, j) = value;
    }
  }
  T& at(i64 i, i64 j) { return memory[static_cast<size_t>(i * (cols + gap) + j)]; }
  Mat<T> mat() { return {memory.data(), rows, cols, cols + gap}; }
};

// Element (i, j) of op(x).
template <class T> T& element(Padded<T>& x, bool transposed, i64 i, i64 j) {
  return transposed ? x.at(j, i) : x.at(i, j);
}

// Runs one poisoned product; counts the elements of C that should be NaN and are not, and those that should be the
// number a product of ones gives and are something else.
template <class T> i64 wrong_elements(Size s, Trans trans, PoisonedPart poison) {
  const bool ta = transposes_a(trans), tb = transposes_b(trans), adds = poison == PoisonedPart::element_of_c;
  const T nan = not_a_number<T>, between = poison == PoisonedPart::between_rows ? nan : T{7};
  const T value_of_a = poison == PoisonedPart::infinity_by_zero ? T{0} : T{1};
  Padded<T> a(ta ? s.k : s.m, ta ? s.m : s.k, value_of_a, between), b(tb ? s.n : s.k, tb ? s.k : s.n, T{2}, between);
  Padded<T> c(s.m, s.n, poison == PoisonedPart::old_result ? nan : T{5}, between);
  const i64 row = s.m / 2, column = s.n - 1;
  if (poison == PoisonedPart::element_of_c) c.at(row, column) = nan;
  for (i64 l = 0; l < s.k; ++l) {
    if (poison == PoisonedPart::row_of_a) element(a, ta, row, l) = nan;
    if (poison == PoisonedPart::column_of_b) element(b, tb, l, column) = nan;
    if (poison == PoisonedPart::infinity_by_zero) element(b, tb, l, column) = std::numeric_limits<T>::infinity();
  }
  gemm<T>(a.mat(), b.mat(), c.mat(), trans, adds);
  const T sound = value_of_a * T{2} * static_cast<T>(s.k) + (adds ? T{5} : T{0});
  i64 wrong = 0;
  for (i64 i = 0; i < s.m; ++i) {
    for (i64 j = 0; j < s.n; ++j) {
      const bool in_row = poison == PoisonedPart::row_of_a && i == row;
      const bool in_column =
          (poison == PoisonedPart::column_of_b || poison == PoisonedPart::infinity_by_zero) && j == column;
      const bool alone = poison == PoisonedPart::element_of_c && i == row && j == column;
      wrong += in_row || in_column || alone ? !std::isnan(c.at(i, j)) : c.at(i, j) != sound;
    }
    for (i64 j = s.n; j < s.n + Padded<T>::gap; ++j) wrong += std::isnan(c.at(i, j)) != std::isnan(between);
  }
  return wrong;
}

}  // namespace

TEST_CASE("promise 5: products agree with a triple loop") {
  Rng rng(1);
  double worst_single = 0, worst_double = 0;  // error / sqrt(k + 1)
  for (int trial = 0; trial < random_products; ++trial) {
    const UseBlas by_blas(trial % 3 == 0);
    const Case s = random_case(rng);
    CAPTURE(s.m);
    CAPTURE(s.n);
    CAPTURE(s.k);
    CAPTURE(static_cast<int>(s.trans));
    const double unit = std::sqrt(static_cast<double>(s.k + 1));
    const double single_error = error_of_case<float>(s, rng, trial % 2 == 0) / unit;
    const double double_error = error_of_case<double>(s, rng, trial % 2 == 1) / unit;
    CHECK(single_error <= 2e-6);
    CHECK(double_error <= 1e-14);
    worst_single = std::max(worst_single, single_error);
    worst_double = std::max(worst_double, double_error);
  }
  MESSAGE("kernel ", blas_info().kernel, ": error / sqrt(K + 1) at most ", worst_single, " in f32, ", worst_double,
          " in f64");
}

TEST_CASE("promise 5: NaN reaches exactly the elements computed from it") {
  i64 cases = 0;
  for (const Size& s : sizes) {
    for (const Trans trans : every_trans) {
      for (const PoisonedPart poison : every_poison) {
        CAPTURE(s.m);
        CAPTURE(s.n);
        CAPTURE(s.k);
        CAPTURE(static_cast<int>(trans));
        CAPTURE(static_cast<int>(poison));
        for (const bool blas : {false, true}) {
          const UseBlas by_blas(blas);
          CHECK(wrong_elements<float>(s, trans, poison) == 0);
          CHECK(wrong_elements<double>(s, trans, poison) == 0);
        }
        cases += 4;
      }
    }
  }
  CHECK(cases == 2 * 624);
}

#if defined(__x86_64__)
TEST_CASE("slow: promise 5: the same with three kernels of OpenBLAS") {
  for (const char* kernel : {promises::automatic_kernel, promises::haswell_kernel, promises::narrow_kernel}) {
    const std::string text = promises::check_rerun(kernel, "promise 5: products agree*"), name = "OPENBLAS_CORETYPE=";
    if (std::string(kernel).starts_with(name))  // OpenBLAS took the one it was told
      CHECK(program::contains(text, "kernel " + std::string(kernel).substr(name.size()) + ": "));
    promises::check_rerun(kernel, "promise 5: NaN reaches*");
  }
}
#endif
