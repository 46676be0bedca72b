// Chapter 4. RMS normalisation: values and gradients by hand, agreement with layer normalisation, errors, threads.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("a row is divided by its root mean square") {
  // (3, 4, 0, 0) has the mean square 25 / 4, so its root mean square is 2.5.
  const std::vector<double> x{3, 4, 0, 0};
  CHECK(close(rms_norm(constant(vector_of(x)), 0).value(), {1.2, 1.6, 0, 0}));
  CHECK(close(rms_norm(constant(vector_of(x).to(f32)), 0).value(), {1.2, 1.6, 0, 0}, 1e-6));
  // With eps = 2.75 the divisor is sqrt(9) = 3; rows do not touch each other.
  CHECK(close(rms_norm(constant(Tensor::of<double>({2, 4}, {3, 4, 0, 0, 0, 0, 3, -4})), 2.75).value(),
              {1, 4.0 / 3, 0, 0, 0, 0, 1, -4.0 / 3}));
}

TEST_CASE("the gradient is r (dy - y <dy, y> / n)") {
  // y = (1.2, 1.6, 0, 0), r = 0.4 and <dy, y> / n = 0.3.
  const Variable x = parameter(vector_of({3, 4, 0, 0}));
  backward(rms_norm(x, 0), vector_of({1, 0, 0, 5}));
  CHECK(close(x.gradient(), {0.4 * (1 - 1.2 * 0.3), 0.4 * -1.6 * 0.3, 0, 0.4 * 5}));
}

TEST_CASE("on rows of mean 0 it is layer normalisation") {
  const Tensor x = Tensor::of<double>({2, 3}, {1, -3, 2, 0.5, 0.5, -1});
  const Tensor y = rms_norm(constant(x), 1e-3).value(), expected = layer_norm(constant(x), {}, {}, 1e-3).value();
  for (i64 i = 0; i < x.count(); ++i) CHECK(close(y.at(i), expected.at(i)));
}

TEST_CASE("a row of zeros gives zeros and finite gradients") {
  const Variable x = parameter(zeros({1, 3}, f64));
  const Variable y = rms_norm(x, 1e-4);
  CHECK(close(y.value(), {0, 0, 0}));
  backward(y, Tensor::of<double>({1, 3}, {1, -2, 0}));
  CHECK(close(x.gradient(), {100, -200, 0}));
}

TEST_CASE("rms_norm of nothing, and errors") {
  CHECK(rms_norm(constant(zeros({0, 3}))).shape() == Shape{0, 3});
  CHECK(rms_norm(constant(zeros({3, 0}))).shape() == Shape{3, 0});
  CHECK(contains(error_of([] { (void)rms_norm(constant(zeros({}))); }), "rms_norm: needs at least one axis"));
  for (const double eps : {-1.0, double{NAN}, double{INFINITY}}) {
    CAPTURE(eps);
    CHECK(contains(error_of([&] {
                     (void)rms_norm(constant(zeros({2, 3})), eps);
                   }),
                   "rms_norm: eps must be a number of 0 or more"));
  }
}

TEST_CASE("rms_norm has the same bits for any number of threads") {
  CHECK(thread_proof([](const auto& x) { return rms_norm(x[0]); }, {{403, 97}}));
}
