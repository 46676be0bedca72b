// Chapter 8. Kernels of layer normalisation against their formulas in long double, and the derivative against slopes.
#include "autograd/ops/norm_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/random.h"
#include "core/tensor_ops.h"
#include "tests/autograd/ops/textbook_norm.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

namespace {

constexpr double norm_eps = 1e-3;

std::vector<double> normal_row(i64 n, u64 seed) {
  Rng rng(seed);
  std::vector<double> x;
  for (i64 i = 0; i < n; ++i) x.push_back(rng.normal() + 0.5);
  return x;
}

// <u, normalised x>
double weighted_norm(const std::vector<double>& x, const std::vector<double>& u, LayerNormForm form) {
  const TextbookNorm norm = textbook_norm(x, norm_eps, form);
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) total += u[i] * norm.of(x[i]);
  return total;
}

}  // namespace

TEST_CASE("a row's mean and scale are those of the formula, in every form") {
  for (const LayerNormForm form : norm_forms) {
    for (const i64 n : {2, 3, 16, 37, 5000}) {
      const std::vector<double> x = normal_row(n, 3);
      const TextbookNorm norm = textbook_norm(x, norm_eps, form);
      const RowStatistics<double> s = row_statistics(x.data(), n, norm_eps, form);
      CHECK(s.mean == doctest::Approx(norm.mean).epsilon(1e-13));
      CHECK(s.r == doctest::Approx(1 / norm.divisor).epsilon(1e-13));
      const std::vector<float> single(x.begin(), x.end());
      const RowStatistics<float> rounded = row_statistics(single.data(), n, norm_eps, form);
      CHECK(rounded.r == doctest::Approx(1 / norm.divisor).epsilon(1e-5));
    }
  }
}

TEST_CASE("constant rows have no deviation but eps, and NaN stays NaN") {
  const std::vector<float> same(9, 4.0F), wrong{1, std::nanf(""), 2};
  CHECK(row_statistics(same.data(), 9, 0.25, LayerNormForm::root_of_variance_plus_eps).r == 2);
  CHECK(row_statistics(same.data(), 9, 0.25, LayerNormForm::std_plus_eps).r == 4);
  CHECK(row_statistics(same.data(), 9, 0.25, LayerNormForm::std_plus_eps).k == 0);
  for (const LayerNormForm form : norm_forms) CHECK(std::isnan(row_statistics(wrong.data(), 3, norm_eps, form).r));
}

TEST_CASE("statistics go into a table and come back") {
  std::vector<double> table(12, -1);
  const RowStatistics<double> s{1, 2, 3, 4};
  s.store(table.data(), 1);
  CHECK(table == std::vector<double>{-1, -1, -1, -1, 1, 2, 3, 4, -1, -1, -1, -1});
  const auto back = RowStatistics<double>::load(table.data(), 1);
  CHECK(back.mean == 1);
  CHECK(back.r == 2);
  CHECK(back.k == 3);
  CHECK(back.scale == 4);
}

TEST_CASE("a row is shifted and scaled, with weight and bias or without") {
  const std::vector<double> x{1, 2, 4, -3, 7}, weight{1, 2, 3, 4, 5}, bias{5, 4, 3, 2, 1};
  const RowStatistics<double> s{.mean = 2, .r = 0.5, .k = 0};
  for (const double* w : {static_cast<const double*>(nullptr), weight.data()}) {
    for (const double* b : {static_cast<const double*>(nullptr), bias.data()}) {
      std::vector<double> y(5);
      normalized_row(x.data(), s, w, b, y.data(), 5);
      for (size_t i = 0; i < 5; ++i) CHECK(y[i] == (x[i] - 2) * 0.5 * (w ? w[i] : 1) + (b ? b[i] : 0));
    }
  }
}

TEST_CASE("a row's derivative is its slope in every form, with weight and without, and may replace dy") {
  for (const LayerNormForm form : norm_forms) {
    for (const i64 n : {2, 7, 40}) {
      const std::vector<double> x = normal_row(n, 3), dy = normal_row(n, 4), weight = normal_row(n, 5);
      const RowStatistics<double> s = row_statistics(x.data(), n, norm_eps, form);
      for (const bool weighs : {false, true}) {
        std::vector<double> g = dy, dx(static_cast<size_t>(n)), in_place = dy;
        for (size_t i = 0; i < g.size(); ++i) g[i] *= weighs ? weight[i] : 1;
        const double* w = weighs ? weight.data() : nullptr;
        norm_derivative_row(x.data(), s, w, dy.data(), dx.data(), n);
        norm_derivative_row(x.data(), s, w, in_place.data(), in_place.data(), n);
        CHECK(in_place == dx);
        for (size_t i = 0; i < dx.size(); ++i) {
          constexpr double h = 1e-5;
          std::vector<double> up = x, down = x;
          up[i] += h;
          down[i] -= h;
          const double slope = (weighted_norm(up, g, form) - weighted_norm(down, g, form)) / (2 * h);
          CHECK(std::fabs(dx[i] - slope) <= 1e-6 * std::max(1.0, std::fabs(slope)));
        }
      }
    }
  }
}

TEST_CASE("only rows whose squares are no numbers of the dtype are scaled, and then near 1") {
  for (const LayerNormForm form : norm_forms) {
    for (const float size : {1.0F, 1e18F, 1e-15F, 1e25F, 3e38F, 1e-20F, 2e-38F}) {
      const std::vector<float> x{size, -size, size / 2};
      const RowStatistics<float> s = row_statistics(x.data(), 3, 0.0, form);
      const bool ordinary = size >= 1e-15F && size <= 1e18F;
      CHECK((s.scale == 1) == ordinary);
      if (!ordinary) {
        CHECK(size * s.scale >= 1);
        CHECK(size * s.scale < 4);
      }
    }
    const std::vector<float> alike(600, std::ldexp(1.0F, 127)), infinite{1, INFINITY, 2};
    const RowStatistics<float> s = row_statistics(alike.data(), 600, 1e-5, form);  // only the sum overflows
    CHECK(s.mean == alike[0]);
    CHECK(s.scale == 1);
    CHECK(std::isfinite(s.r));
    CHECK(std::isnan(row_statistics(infinite.data(), 3, 1e-5, form).r));
  }
}

TEST_CASE("a row adds its part to the gradients of weight and bias") {
  const std::vector<double> x{3, 1}, dy{5, 7};
  std::vector<double> dweight{100, 200}, dbias{10, 20};
  add_norm_gradients(x.data(), {.mean = 2, .r = 0.5, .k = 0}, dy.data(), dweight.data(), dbias.data(), 2);
  CHECK(dweight == std::vector<double>{102.5, 196.5});
  CHECK(dbias == std::vector<double>{15, 27});
}

TEST_CASE("what cannot be normalised is refused in the operation's name") {
  const Tensor x = zeros({2, 3});
  const auto error = [&](const Tensor& in, const Tensor& weight, const Tensor& bias, LayerNormForm form) {
    return error_of([&] { check_norm("norm", in, weight, bias, 1e-5, form); });
  };
  CHECK(error(x, {}, {}, norm_forms[2]) == "");
  CHECK(error(x, zeros({3}), zeros({3}), norm_forms[0]) == "");
  CHECK(error(zeros({}), {}, {}, norm_forms[0]) == "norm: needs at least one axis");
  CHECK(error(x, zeros({2}), {}, norm_forms[0]) == "norm: weight and bias need shape [3], got [2]");
  CHECK(error(x, {}, zeros({2, 3}), norm_forms[0]) == "norm: weight and bias need shape [3], got [2, 3]");
  CHECK(error(zeros({3, 1}), {}, {}, norm_forms[2]) == "norm: the unbiased form needs rows of at least 2");
}

TEST_CASE("eps is a number of 0 or more") {
  const auto error = [](double eps) {
    return error_of([&] { check_norm("norm", zeros({2, 3}), {}, {}, eps, norm_forms[0]); });
  };
  CHECK(error(0) == "");
  CHECK(error(-1) == "norm: eps must be a number of 0 or more, got -1");
  CHECK(error(NAN) == "norm: eps must be a number of 0 or more, got nan");
  CHECK(error(INFINITY) == "norm: eps must be a number of 0 or more, got inf");
}
