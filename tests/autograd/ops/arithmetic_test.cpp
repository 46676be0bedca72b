// Chapter 2. Sums, differences, products and quotients: values, broadcast gradients, errors.
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

TEST_CASE("the gradient of a broadcast operand is summed down to its shape") {
  const Variable matrix = parameter(zeros({2, 3}, f64)), row = parameter(zeros({3}, f64)),
                 one = parameter(zeros({}, f64));
  backward(matrix + row - one, Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(close(row.gradient(), {5, 7, 9}));
  CHECK(row.gradient().shape() == Shape{3});
  CHECK(close(one.gradient(), {-21}));
  CHECK(one.gradient().shape() == Shape{});
}

TEST_CASE("a repeated input gets both contributions") {
  const Variable x = parameter(vector_of({3, -1}));
  backward(x * x + x - x / x, vector_of({1, 1}));
  CHECK(close(x.gradient(), {7, -1}));
}

TEST_CASE("shapes that do not broadcast and mixed dtypes are errors that say where the inputs came from") {
  const Variable a = parameter(zeros({2, 3}, f64), "a"), b = constant(zeros({4}, f64)), c = constant(zeros({3}));
  const std::string shapes = error_of([&] { (void)(a + tanh(b)); });
  CHECK(contains(shapes, "add: shapes [2, 3] and [4] do not broadcast (3 against 4"));
  CHECK(contains(shapes, "\n  input 0: [2, 3]  from parameter a\n  input 1: [4]     from a constant"));
  CHECK(contains(error_of([&] { (void)(a * c); }), "mul: dtypes differ (f64 and f32)"));
}

TEST_CASE("arithmetic's bits do not depend on the number of threads") {
  CHECK(thread_proof([](const auto& x) { return x[0] * x[1] - x[0] / (x[2] * x[2] + x[1]); },
                     {{37, 1023}, {1023}, {37, 1}}));
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
