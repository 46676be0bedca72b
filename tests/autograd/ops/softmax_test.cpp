// Chapter 4. Softmax and its logarithm: the definition, large and infinite inputs, gradients.
#include "autograd/ops/softmax_rows.h"

#include <utility>

#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

// y_i = e^{x_i - m} / sum_j e^{x_j - m} in long double.
std::vector<double> naive_softmax(const std::vector<double>& x) {
  const double m = *std::max_element(x.begin(), x.end());
  long double total = 0;
  for (const double v : x) total += std::exp(static_cast<long double>(v) - m);
  std::vector<double> y;
  for (const double v : x) y.push_back(static_cast<double>(std::exp(static_cast<long double>(v) - m) / total));
  return y;
}

}  // namespace

TEST_CASE("promise 14: softmax equals its definition, at any size of input") {
  for (const auto& x : std::vector<std::vector<double>>{
           {0.3}, {1, 2, 3}, {1e4, -1e4, 1e4 - 1}, {-1e4, -1e4 - 2}, {-infinity, 0, 1}, {700, 710, 720}}) {
    const std::vector<double> y = naive_softmax(x);
    CHECK(close(softmax(constant(vector_of(x))).value(), y));
    CHECK(close(softmax(constant(vector_of(x).to(f32))).value(), y, 1e-6));
    std::vector<double> logs;
    for (const double v : x) logs.push_back(v - x[0] + std::log(y[0]));
    if (y[0] == 0) continue;
    CHECK(close(log_softmax(constant(vector_of(x))).value(), logs, 1e-11));
    CHECK(close(log_softmax(constant(vector_of(x).to(f32))).value(), logs, 1e-6));
  }
}

TEST_CASE("a row of -inf alone gives zeros and no gradient; rows do not touch each other") {
  const Variable x = parameter(Tensor::of<double>({2, 2}, {-infinity, -infinity, 1, 2}));
  const Variable y = softmax(x);
  const std::vector<double> last = naive_softmax({1, 2});
  CHECK(close(y.value(), {0, 0, last[0], last[1]}));
  backward(y, Tensor::of<double>({2, 2}, {1, 2, 3, 4}));
  const double slope = last[0] * last[1];
  CHECK(close(x.gradient(), {0, 0, -slope, slope}));
}

TEST_CASE("the largest number of a row is found wherever it stands, also among NaN") {
  CHECK(kernels::row_max<float>(nullptr, 0) == -infinity);
  for (const i64 n : {1, 11, 63, 64, 65, 127, 128, 200}) {
    CAPTURE(n);
    std::vector<float> x(static_cast<size_t>(n), -std::numeric_limits<float>::infinity());
    CHECK(kernels::row_max(x.data(), n) == -infinity);
    std::fill(x.begin(), x.end(), std::numeric_limits<float>::quiet_NaN());
    bool found = std::isnan(kernels::row_max(x.data(), n));
    for (float& at : x) {
      const float before = std::exchange(at, -2.5F);
      found = found && kernels::row_max(x.data(), n) == -2.5F;
      at = before;
    }
    CHECK(found);
  }
}

TEST_CASE("softmax of nothing, of a scalar, of the lowest numbers, and of a row longer than a chunk of a loop") {
  constexpr double lowest = std::numeric_limits<double>::lowest();
  CHECK(close(softmax(constant(full({40}, lowest, f64))).value(), std::vector<double>(40, 1.0 / 40)));
  CHECK(softmax(constant(full({10'001}, 1.0))).value().at(10'000) * 10'001 == doctest::Approx(1).epsilon(1e-6));
  CHECK(softmax(constant(zeros({0, 3}))).shape() == Shape{0, 3});
  CHECK(softmax(constant(zeros({3, 0}))).shape() == Shape{3, 0});
  CHECK(contains(error_of([] { (void)softmax(constant(zeros({}))); }), "softmax: needs at least one axis"));
}
