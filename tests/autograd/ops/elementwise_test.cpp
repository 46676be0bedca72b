// Chapter 3. Arithmetic, powers, exponentials, roots and activations against their formulas, and at their limits.
#include <numbers>

#include "tests/autograd/ops/fused.h"
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("arithmetic gives the values and derivatives taught at school") {
  const Variable a = parameter(vector_of({6, -3}), "a"), b = parameter(vector_of({2, 4}), "b");
  CHECK(close((a + b).value(), {8, 1}));
  CHECK(close((a - b).value(), {4, -7}));
  CHECK(close((a * b).value(), {12, -12}));
  CHECK(close((a / b).value(), {3, -0.75}));
  CHECK(close((-a).value(), {-6, 3}));
  CHECK(close((0.5 * a).value(), {3, -1.5}));
  backward(a * b - a / b + 2.0 * a - b, vector_of({1, 10}));
  CHECK(close(a.gradient(), {2 - 0.5 + 2, 10 * (4 - 0.25 + 2)}));
  CHECK(close(b.gradient(), {6 + 6.0 / 4 - 1, 10 * (-3 - 3.0 / 16 - 1)}));
}

TEST_CASE("shapes that do not broadcast and mixed dtypes are errors that say where the inputs came from") {
  const Variable a = parameter(zeros({2, 3}, f64), "a"), b = constant(zeros({4}, f64)), c = constant(zeros({3}));
  const std::string shapes = error_of([&] { (void)(a + tanh(b)); });
  CHECK(contains(shapes, "add: shapes [2, 3] and [4] do not broadcast (3 against 4"));
  CHECK(contains(shapes, "\n  input 0: [2, 3]  from parameter a\n  input 1: [4]     from a constant"));
  CHECK(contains(error_of([&] { (void)(a * c); }), "mul: dtypes differ (f64 and f32)"));
}

TEST_CASE("numbers stand on either side of an operator") {
  const Variable x = parameter(vector_of({2, -4}));
  const Variable y = (1.5 + x) * 2.0 + (3.0 - x) / 4.0 - 0.25;
  CHECK(close(y.value(), {7, -3.5}));
  backward(y, vector_of({1, 1}));
  CHECK(close(x.gradient(), {1.75, 1.75}));
}

TEST_CASE("a number divided by a tensor, in both dtypes") {
  const Variable x = parameter(vector_of({2, -4}));
  const Variable y = 1.0 / x;
  CHECK(close(y.value(), {0.5, -0.25}));
  backward(y, vector_of({1, 8}));
  CHECK(close(x.gradient(), {-0.25, -0.5}));
  CHECK((3.0 / constant(full({2, 3}, 2.0))).value().dtype() == f32);
  CHECK((3.0 / constant(full({2, 3}, 2.0))).value()(1, 2) == 1.5);
  CHECK_THROWS_AS((void)(1.0 / Variable()), Error);
}

TEST_CASE("a number beyond the dtype's range divides and is divided, forward and backward") {
  const Variable x = parameter(Tensor::of<float>({2}, {0, 1e-30F}));
  const Variable y = x / 1e-39;
  CHECK(y.value().at(0) == 0);
  CHECK(y.value().at(1) == doctest::Approx(1e9).epsilon(1e-6));
  backward(y, full({2}, 1e-20));
  CHECK(x.gradient().at(0) == doctest::Approx(1e19).epsilon(1e-6));
  const Variable z = parameter(full({}, 1e38));
  const Variable ten = 1e39 / z;
  CHECK(ten.item() == doctest::Approx(10).epsilon(1e-6));
  backward(ten, full({}, 1e10));
  CHECK(z.gradient().item() * 1e27 == doctest::Approx(-1).epsilon(1e-6));
}

TEST_CASE("0, infinity and numbers beyond the dtype's range are divided by a tensor, forward and backward") {
  const auto check_quotient = [](double c, const Tensor& x, double y, double dx) {
    CAPTURE(c);
    const Variable divisor = parameter(x);
    const Variable quotient = c / divisor;
    CHECK(quotient.item() / y == doctest::Approx(1).epsilon(1e-6));
    backward(quotient);
    CHECK(divisor.gradient().item() / dx == doctest::Approx(1).epsilon(1e-6));
  };
  for (const Dtype dtype : {f32, f64}) {
    const Tensor two = full({}, 2.0, dtype);
    for (const double c : {0.0, double{INFINITY}, -double{INFINITY}}) {
      const Variable x = parameter(two);
      backward(c / x);
      CHECK((c / x).item() == c);
      CHECK(x.gradient().item() == -c);
    }
  }
  check_quotient(1e-39, full({}, 1e-2), 1e-37, -1e-35);  // x / c would be infinite
  check_quotient(1e39, full({}, 1e30), 1e9, -1e-21);
  check_quotient(1e-310, full({}, 1e-5, f64), 1e-305, -1e-300);
}

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }

struct FunctionOfOne {
  const char* name;
  Variable (*f)(const Variable&);
  double (*value)(double);
};

const FunctionOfOne of_positive[] = {
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"log", log, [](double x) { return std::log(x); }},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
    {"pow 2.5", [](const Variable& x) { return pow(x, 2.5); }, [](double x) { return std::pow(x, 2.5); }},
    {"pow -1", [](const Variable& x) { return pow(x, -1); }, [](double x) { return 1 / x; }},
};
const FunctionOfOne activations[] = {
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, logistic},
    {"relu", relu, [](double x) { return x > 0 ? x : 0.0; }},
    {"gelu", gelu, [](double x) { return x * normal_cdf(x); }},
    {"gelu_tanh", gelu_tanh,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }},
    {"silu", silu, [](double x) { return x * logistic(x); }},
    {"softplus", softplus, [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
    {"elu", [](const Variable& x) { return elu(x); }, [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"abs", abs, [](double x) { return std::fabs(x); }},
    {"clamp", [](const Variable& x) { return clamp(x, -2, 1); }, [](double x) { return std::clamp(x, -2.0, 1.0); }},
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
};

void check_values(std::span<const FunctionOfOne> functions, const std::vector<double>& points, double f32_tolerance) {
  for (const FunctionOfOne& function : functions) {
    CAPTURE(function.name);
    std::vector<double> value;
    for (const double x : points) value.push_back(function.value(x));
    CHECK(close(function.f(constant(vector_of(points))).value(), value));
    CHECK(close(function.f(constant(vector_of(points).to(f32))).value(), value, f32_tolerance));
  }
}

}  // namespace

TEST_CASE("functions of one number equal their formulas, in f64 and f32") {
  check_values(of_positive, {0.01, 0.5, 1, 1.75, 3, 20}, 5e-7);
  check_values(activations, {-20, -4, -1.5, -0.3, 0.2, 0.9, 1, 3.7, 20}, 1e-6);
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

TEST_CASE("activations saturate without NaN, forward and backward") {
  for (const FunctionOfOne& activation : activations) {
    CAPTURE(activation.name);
    for (const Dtype dtype : {f32, f64}) {
      const Tensor far = vector_of({-1e30, -1e4, -100, 100, 1e4, 1e30}).to(dtype);
      const Tensor y = activation.f(constant(far)).value(), dx = gradient_of_sum(activation.f, far);
      for (i64 i = 0; i < far.count(); ++i) {
        CHECK(close(y.at(i), activation.value(far.at(i)), 1e-6));
        CHECK(std::isfinite(dx.at(i)));
      }
    }
  }
}

TEST_CASE("relu passes no gradient at 0, and keeps NaN") {
  CHECK(close(gradient_of_sum(relu, vector_of({-1, 0, 2})), {0, 0, 1}));
  CHECK(std::isnan(relu(constant(vector_of({std::nan("")}))).value().at(0)));
  CHECK(relu(constant(zeros({0}))).value().count() == 0);
}

TEST_CASE("clamp keeps NaN, and its ends may be infinite") {
  CHECK(close(clamp(constant(vector_of({-1e300, 1e300})), -INFINITY, 2).value(), {-1e300, 2}));
  CHECK(std::isnan(clamp(constant(vector_of({std::nan("")})), 0, 1).value().at(0)));
  CHECK(error_of([] { (void)clamp(constant(vector_of({1})), 2, 1); }) == "clamp: needs low <= high, got 2 and 1");
}

TEST_CASE("a tensor beside a variable is a constant; leading axes that do not broadcast are an error") {
  const Variable x = parameter(vector_of({1, 2}));
  const Tensor c = vector_of({3, 4});
  CHECK(close(((x + c) * c - c / (c - x)).value(), {12 - 1.5, 24 - 2}));
  backward(c * x, vector_of({1, 1}));
  CHECK(close(x.gradient(), {3, 4}));
  CHECK(contains(error_of([&] { (void)(x + arange(2)); }), "constant: needs a tensor of f32 or f64"));
  CHECK(contains(error_of([&] {
                   (void)matmul(constant(zeros({2, 3, 4})), constant(zeros({5, 4, 2})), Trans::none);
                 }),
                 "matmul: shapes [2] and [5] do not broadcast"));
}

TEST_CASE("grad is the derivative of a function at a tensor, and 0 where nothing leads to it") {
  const Tensor x = vector_of({1, -2});
  CHECK(close(grad([](const Variable& v) { return sum(v * v); }, x), {2, -4}));
  CHECK(close(grad([](const Variable&) { return constant(full({}, 1.0)); }, x), {0, 0}));
  CHECK(contains(error_of([&] { grad([](const Variable& v) { return v * v; }, x); }), "must return one number"));
  const NoGradient nothing_recorded;
  CHECK(contains(error_of([&] { grad([](const Variable& v) { return sum(v); }, x); }), "nothing is recorded"));
  CHECK(close(x, {1, -2}));
}

TEST_CASE("glu of an odd number of columns is an error") {
  const std::string error = error_of([] { glu(constant(zeros({2, 3}))); });
  CHECK(error.substr(0, error.find('\n')) == "glu: needs an even number of columns, has shape [2, 3]");
  CHECK(error_of([] { glu(constant(zeros({}))); }).starts_with("glu: needs an even number of columns, has shape []"));
}
