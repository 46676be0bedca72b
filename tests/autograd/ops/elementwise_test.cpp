// Chapter 3. Powers, exponentials, logarithms and roots against libm.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

struct ElementwiseFunction {
  const char* name;
  Variable (*f)(const Variable&);
  double (*value)(double);
  double (*derivative)(double);
};

const ElementwiseFunction functions[] = {
    {"exp", exp, [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); }},
    {"log", log, [](double x) { return std::log(x); }, [](double x) { return 1 / x; }},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, [](double x) { return 0.5 / std::sqrt(x); }},
    {"pow 2.5", [](const Variable& x) { return pow(x, 2.5); }, [](double x) { return std::pow(x, 2.5); },
     [](double x) { return 2.5 * std::pow(x, 1.5); }},
    {"pow -1", [](const Variable& x) { return pow(x, -1); }, [](double x) { return 1 / x; },
     [](double x) { return -1 / (x * x); }},
};

}  // namespace

TEST_CASE("elementwise functions and their derivatives equal libm's, in f64 and f32") {
  const std::vector<double> points{0.01, 0.5, 1, 1.75, 3, 20};
  for (const ElementwiseFunction& function : functions) {
    CAPTURE(function.name);
    std::vector<double> value, derivative;
    for (const double x : points) {
      value.push_back(function.value(x));
      derivative.push_back(function.derivative(x));
    }
    const Tensor x = vector_of(points);
    CHECK(close(function.f(constant(x)).value(), value));
    CHECK(close(gradient_of_sum(function.f, x), derivative));
    CHECK(close(function.f(constant(x.to(f32))).value(), value, 5e-7));
    CHECK(close(gradient_of_sum(function.f, x.to(f32)), derivative, 5e-7));
  }
}

TEST_CASE("elementwise functions and slopes at 0 and infinity are their limits") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(close(exp(constant(vector_of({-infinity, 0, infinity, 1e4, -1e4}))).value(), {0, 1, infinity, infinity, 0}));
  CHECK(close(log(constant(vector_of({0, 1, infinity}))).value(), {-infinity, 0, infinity}));
  CHECK(close(gradient_of_sum([](const Variable& x) { return pow(x, 0); }, vector_of({0, 2})), {0, 0}));
  CHECK(close(gradient_of_sum([](const Variable& x) { return pow(x, 1); }, vector_of({0, -2})), {1, 1}));
  CHECK(close(gradient_of_sum([](const Variable& x) { return pow(x, 2); }, vector_of({0, -2})), {0, -4}));
  CHECK(std::isnan(sqrt(constant(vector_of({-1}))).value().at(0)));
  CHECK(exp(constant(zeros({0, 2}))).shape() == Shape{0, 2});
}

TEST_CASE("elementwise functions have the same bits for any number of threads") {
  for (const ElementwiseFunction& function : functions) {
    CAPTURE(function.name);
    CHECK(thread_proof([&](const auto& x) { return function.f(x[0] * x[0]); }, {{35001}}));
  }
}

TEST_CASE("log and pow of denormal numbers are those of 0, and so are their derivatives") {
  for (const Dtype dtype : {f32, f64}) {
    const double denormal = dtype == f32 ? 1e-40 : 1e-310;
    for (const i64 n : {1, 100'000}) {  // on the caller's own thread, and on many
      const Variable x = parameter(full({n}, denormal, dtype)), y = parameter(full({n}, denormal, dtype));
      const Variable a = log(x), b = pow(y, 0.5);
      CHECK(a.value().at(n - 1) == -INFINITY);
      CHECK(b.value().at(n - 1) == 0);
      backward(a, full({n}, 1.0, dtype));
      backward(b, full({n}, 1.0, dtype));
      CHECK(x.gradient().at(n - 1) == INFINITY);
      CHECK(y.gradient().at(n - 1) == INFINITY);
    }
  }
}
