// Chapter 3. Activations against their formulas in double, glu against a product with a sigmoid.
#include <numbers>

#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double normal_cdf(double x) { return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }

struct Activation {
  const char* name;
  Variable (*f)(const Variable&);
  double (*value)(double);
};

const Activation activations[] = {
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, logistic},
    {"relu", relu, [](double x) { return x > 0 ? x : 0.0; }},
    {"gelu", gelu, [](double x) { return x * normal_cdf(x); }},
    {"gelu_tanh", gelu_tanh,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }},
    {"silu", silu, [](double x) { return x * logistic(x); }},
};

}  // namespace

TEST_CASE("activations and their slopes equal the formulas, in f64 and f32") {
  const std::vector<double> points{-20, -4, -1.5, -0.3, 0.2, 0.9, 1, 3.7, 20};
  for (const Activation& activation : activations) {
    CAPTURE(activation.name);
    std::vector<double> value, slope;
    for (const double x : points) {
      value.push_back(activation.value(x));
      slope.push_back((activation.value(x + 1e-5) - activation.value(x - 1e-5)) / 2e-5);
    }
    const Tensor x = vector_of(points);
    CHECK(close(activation.f(constant(x)).value(), value));
    CHECK(close(gradient_of_sum(activation.f, x), slope, 1e-8));
    CHECK(close(activation.f(constant(x.to(f32))).value(), value, 1e-6));
    CHECK(close(gradient_of_sum(activation.f, x.to(f32)), slope, 2e-6));
  }
}

TEST_CASE("activations saturate without NaN, forward and backward") {
  for (const Activation& activation : activations) {
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

TEST_CASE("relu passes no gradient at 0 and below, and keeps NaN") {
  CHECK(close(gradient_of_sum(relu, vector_of({-1, 0, 2})), {0, 0, 1}));
  CHECK(std::isnan(relu(constant(vector_of({std::nan("")}))).value().at(0)));
  CHECK(relu(constant(zeros({0}))).value().count() == 0);
}

TEST_CASE("activations have the same bits for any number of threads") {
  for (const Activation& activation : activations) {
    CAPTURE(activation.name);
    CHECK(thread_proof([&](const auto& x) { return activation.f(x[0]); }, {{35001}}));
  }
}

TEST_CASE("glu is the first half times the sigmoid of the second") {
  for (const Shape& shape : {Shape{2}, {3, 8}, {2, 3, 66}, {41, 514}}) {
    INFO(shape);
    check_fused([](const Variables& x) { return glu(x[0]); },
                [](const Variables& x) {
                  const auto [a, b] = split(x[0], x[0].shape()[-1] / 2, -1);
                  return a * sigmoid(b);
                },
                normals({shape}));
  }
}

TEST_CASE("a gate of 0 lets half pass; one far below 0 nothing, one far above everything") {
  const Tensor y = glu(constant(Tensor::of<double>({3, 2}, {6, 0, 6, -800, 6, 800}))).value();
  CHECK(close(y, {3, 0, 6}));
}

TEST_CASE("the bits of glu do not depend on the number of threads") {
  CHECK(thread_proof([](const Variables& x) { return glu(x[0]); }, {{50, 700}}));
}

TEST_CASE("glu of an odd number of columns is an error") {
  const std::string error = error_of([] { glu(constant(zeros({2, 3}))); });
  CHECK(error.substr(0, error.find('\n')) == "glu: needs an even number of columns, has shape [2, 3]");
  CHECK(error_of([] { glu(constant(zeros({}))); }).starts_with("glu: needs an even number of columns, has shape []"));
}
