// Chapter 8. The fused linear maps against product, bias, activation and dropout one after another.
#include <array>

#include "autograd/check/scheduling.h"
#include "core/products/gemm.h"
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr Draw linear_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};

// x W^T + b, for the rows `rows` of W and b; x = {input, weight} or {input, weight, bias}.
Variable composed_linear(const Variables& x, RowRange rows = {}) {
  const i64 end = rows.end < 0 ? x[1].size(0) : rows.end;
  const Shape leading = x[0].shape().without_last();
  const Variable matrix = leading.rank() == 0 ? reshape(x[0], {1, -1}) : x[0];
  const Variable y = reshape(matmul(matrix, slice(x[1], 0, rows.begin, end), Trans::b), leading.plus(end - rows.begin));
  return x.size() > 2 ? y + slice(x[2], 0, rows.begin, end) : y;
}

Variable linear_bias(const Variables& x) { return x.size() > 2 ? x[2] : Variable(); }

struct LinearSizes {
  Shape leading;
  i64 in, out;
  std::vector<Shape> shapes(bool bias) const {
    std::vector<Shape> all{leading.plus(in), {out, in}};
    if (bias) all.push_back({out});
    return all;
  }
};

// One element; odd sizes; three axes; tiles of rows; tiles of columns, whose dropout begins in the middle of a row.
const std::vector<LinearSizes>& linear_sizes() {
  static const std::vector<LinearSizes> all{{{}, 3, 2},        {{1}, 1, 1},      {{5}, 7, 13},      {{2, 3}, 9, 16},
                                            {{7, 43}, 37, 51}, {{21}, 61, 1030}, {{2, 300}, 33, 24}};
  return all;
}

}  // namespace

TEST_CASE("of these sizes, one with many rows and one with many columns are cut into several tiles") {
  const small::Threads two(2);
  CHECK(kernels::gemm_tiles(301, 51, 37, Trans::b) > 1);
  CHECK(kernels::gemm_tiles(21, 1030, 61, Trans::b) > 1);
}

TEST_CASE("linear equals product and bias") {
  for (const LinearSizes& s : linear_sizes()) {
    for (const bool bias : {false, true}) {
      INFO(s.leading.plus(s.in), " ", s.out, " ", bias);
      check_fused([](const Variables& x) { return linear(x[0], x[1], linear_bias(x)); },
                  [](const Variables& x) { return composed_linear(x); }, normals(s.shapes(bias)));
    }
  }
}

TEST_CASE("linear by some rows of a weight equals the product with their slice; the others have no gradient") {
  for (const RowRange rows :
       {RowRange{0, 5}, RowRange{4, 9}, RowRange{9, 17}, RowRange{9}, RowRange{3, 3}, RowRange{0, 17}}) {
    for (const bool bias : {false, true}) {
      INFO(rows.begin, " ", rows.end, " ", bias);
      const LinearSizes s{{2, 3}, 5, 17};
      check_fused([rows](const Variables& x) { return linear(x[0], x[1], linear_bias(x), rows); },
                  [rows](const Variables& x) { return composed_linear(x, rows); }, normals(s.shapes(bias)));
    }
  }
}

TEST_CASE("linear_relu equals product, bias, relu and dropout: the same elements are dropped") {
  for (const LinearSizes& s : linear_sizes()) {
    for (const double p : {0.0, 0.3}) {
      for (const bool bias : {false, true}) {
        INFO(s.leading.plus(s.in), " ", s.out, " ", p, " ", bias);
        check_fused([p](const Variables& x) { return linear_relu(x[0], x[1], linear_bias(x), p, linear_draw); },
                    [p](const Variables& x) { return dropout(relu(composed_linear(x)), p, linear_draw); },
                    normals(s.shapes(bias)));
      }
    }
  }
}

TEST_CASE("what is not recorded has the same bits, and is dropped alike however columns are cut") {
  Rng rng(8);
  for (const i64 rows : {3, 40}) {
    const Tensor x = randn({rows, 61}, rng), W = randn({1030, 61}, rng), b = randn({1030}, rng);
    const auto run = [&](const auto& make) {
      return std::array{linear(make(x), make(W), make(b)).value(),
                        linear_relu(make(x), make(W), make(b), 0.4, linear_draw).value()};
    };
    const auto recorded = run([](const Tensor& t) { return parameter(t); });
    const auto plain = run([](const Tensor& t) { return constant(t); });
    const GrainScope smallest(1);
    const auto cut = run([](const Tensor& t) { return constant(t); });
    for (size_t i = 0; i < recorded.size(); ++i) {
      CHECK(same_bits(plain[i], recorded[i]));
      CHECK(same_bits(cut[i], recorded[i]));
    }
  }
}

TEST_CASE("linear maps of no column give the bias") {
  const Variable none = parameter(zeros({2, 0})), weight = parameter(zeros({5, 0})), bias = constant(full({5}, 2.0));
  const Tensor twos = full({2, 5}, 2.0);
  CHECK(same_bits(linear(none, weight, bias).value(), twos));
  CHECK(distance({linear_relu(none, weight, bias, 0.3, linear_draw).value()},
                 {dropout(constant(twos), 0.3, linear_draw).value()}) <= 1e-6);
}

TEST_CASE("NaN passes through every linear map") {
  Tensor x = normal({2, 3});
  x.write<double>()[4] = std::nan("");
  const Variable weight = constant(normal({5, 3}, 2));
  for (const Tensor& y : {linear(constant(x), weight, {}).value(), linear_relu(constant(x), weight, {}).value()}) {
    for (i64 i = 0; i < 5; ++i) {
      CHECK_FALSE(std::isnan(y.at(i)));
      CHECK(std::isnan(y.at(5 + i)));
    }
  }
}

TEST_CASE("errors of linear maps name the operation and the rule") {
  const Variable x = parameter(zeros({2, 3}), "x"), weight = parameter(zeros({5, 3})), scalar = constant(zeros({}));
  const auto error = [&](const Variable& in, const Variable& W, const Variable& b = {}, RowRange rows = {}) {
    return error_of([&] { (void)linear(in, W, b, rows); });
  };
  CHECK(error(x, constant(zeros({5, 4})))
            .starts_with("linear: inner sizes differ (3 != 4)\n  input 0: [2, 3]  from parameter x"));
  CHECK(contains(error(x, constant(zeros({3}))), "the weight needs shape [out, in]"));
  CHECK(contains(error(x, weight, x), "linear: the bias needs shape [5], has [2, 3]"));
  CHECK(contains(error(x, weight, {}, {3, 6}), "rows 3 to 6 are not rows of a weight [5, 3]"));
  CHECK(contains(error(x, weight, {}, {3, 2}), "rows 3 to 2 are not rows of a weight [5, 3]"));
  CHECK(contains(error(x, weight, {}, {0, -2}), "rows 0 to -2 are not rows of a weight [5, 3]"));
  CHECK(contains(error(scalar, weight), "linear: x needs at least one axis"));
  CHECK(contains(error_of([&] { (void)linear_relu(scalar, weight, {}); }), "linear_relu: x needs at least one axis"));
  CHECK(
      contains(error_of([&] { (void)linear_relu(x, weight, {}, 1.5); }), "linear_relu: needs a probability in [0, 1]"));
}
