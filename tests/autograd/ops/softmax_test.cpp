// Chapter 4. Softmax and its logarithm: the definition, large and infinite inputs, gradients.
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

TEST_CASE("softmax's gradient is y (dy - <dy, y>), log_softmax's dy - y sum dy") {
  const std::vector<double> x{0.5, -1, 2}, dy{1, -2, 0.5}, y = naive_softmax(x);
  const double inner = dy[0] * y[0] + dy[1] * y[1] + dy[2] * y[2], total = dy[0] + dy[1] + dy[2];
  const Variable a = parameter(vector_of(x)), b = parameter(vector_of(x));
  backward(softmax(a), vector_of(dy));
  CHECK(close(a.gradient(), {y[0] * (dy[0] - inner), y[1] * (dy[1] - inner), y[2] * (dy[2] - inner)}));
  backward(log_softmax(b), vector_of(dy));
  CHECK(close(b.gradient(), {dy[0] - y[0] * total, dy[1] - y[1] * total, dy[2] - y[2] * total}));
}

TEST_CASE("softmax of nothing, and of a scalar") {
  CHECK(softmax(constant(zeros({0, 3}))).shape() == Shape{0, 3});
  CHECK(softmax(constant(zeros({3, 0}))).shape() == Shape{3, 0});
  CHECK(contains(error_of([] { (void)softmax(constant(zeros({}))); }), "softmax: needs at least one axis"));
}

TEST_CASE("softmax has the same bits for any number of threads") {
  CHECK(thread_proof([](const auto& x) { return softmax(x[0]); }, {{301, 117}}));
  CHECK(thread_proof([](const auto& x) { return log_softmax(x[0]); }, {{301, 117}}));
}
