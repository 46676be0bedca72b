// Chapter 4. Layer normalisation by its formulas, in three forms, and by the root mean square: rows far from zero, rows
// of one number, numbers whose squares overflow.
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr std::array norm_forms{LayerNormForm::root_of_variance_plus_eps, LayerNormForm::std_plus_eps,
                                LayerNormForm::unbiased_std_plus_eps};

// (x_i - mean) / divisor.
std::vector<double> textbook_norm(const std::vector<double>& row, double eps, LayerNormForm form) {
  const auto n = static_cast<long double>(row.size());
  long double mean = 0, squares = 0;
  for (const double x : row) mean += x / n;
  for (const double x : row) squares += (x - mean) * (x - mean);
  const long double divisor = form == LayerNormForm::root_of_variance_plus_eps ? std::sqrt(squares / n + eps)
                              : form == LayerNormForm::std_plus_eps            ? std::sqrt(squares / n) + eps
                                                                               : std::sqrt(squares / (n - 1)) + eps;
  std::vector<double> y;
  for (const double x : row) y.push_back(static_cast<double>((x - mean) / divisor));
  return y;
}

}  // namespace

TEST_CASE("layer norm's three forms equal their formulas, with weight and bias, for rows of any length") {
  for (const LayerNormForm form : norm_forms) {
    for (const i64 n : {2, 3, 4, 16, 37, 5000}) {
      const Tensor x = normal({n}, 3) + full({}, 0.5, f64);
      std::vector<double> y = textbook_norm(elements(x), 0.1, form);
      CHECK(close(layer_norm(constant(x), {}, {}, 0.1, form).value(), y));
      CHECK(close(layer_norm(constant(x.to(f32)), {}, {}, 0.1, form).value(), y, 1e-5));
      for (i64 i = 0; i < n; ++i) y[static_cast<size_t>(i)] = y[static_cast<size_t>(i)] * x(i) + 7;
      CHECK(close(layer_norm(constant(x), constant(x), constant(full({n}, 7.0, f64)), 0.1, form).value(), y));
    }
    for (const double bad : {double{NAN}, double{INFINITY}})
      CHECK(std::isnan(layer_norm(constant(vector_of({1, bad, 2})), {}, {}, 0.1, form).value().at(0)));
  }
}

TEST_CASE("promise 14: rows with mean 1e4 keep their variance in f32") {
  Tensor x = normal({4, 512}, 3, f32);
  for (i64 i = 0; i < x.count(); ++i) x.write<float>()[i] += 1e4F;
  const Tensor y = layer_norm(constant(x), {}, {}, 0).value();
  for (i64 row = 0; row < 4; ++row) {
    double mean = 0, squares = 0, weighted = 0;
    for (i64 i = 0; i < 512; ++i) mean += x.at(row * 512 + i) / 512;
    for (i64 i = 0; i < 512; ++i) {
      const double centred = x.at(row * 512 + i) - mean;
      squares += centred * centred;
      weighted += centred * y.at(row * 512 + i);
    }
    const double variance = squares / 512, deviation = squares / weighted;  // what y was divided by
    CHECK(std::fabs(deviation * deviation / variance - 1) <= 2e-6);
  }
}

TEST_CASE("a constant row gives the bias, and finite gradients") {
  for (const LayerNormForm form : norm_forms) {
    const Variable x = parameter(full({1, 3}, 5.0, f64)), bias = constant(vector_of({1, 2, 3}));
    const Variable y = layer_norm(x, {}, bias, 1e-5, form);
    CHECK(close(y.value(), {1, 2, 3}));
    backward(y, normal({1, 3}));
    for (i64 i = 0; i < 3; ++i) CHECK(std::isfinite(x.gradient().at(i)));
  }
}

TEST_CASE("the gradients of weight and bias are sums over any number of rows") {
  for (const i64 rows : {1, 3, 4, 7, 8, 13}) {
    CAPTURE(rows);
    const Tensor x = normal({rows, 37}, 3), dy = normal({rows, 37}, 4);
    const Variable w = parameter(normal({37}, 5)), b = parameter(normal({37}, 6));
    backward(layer_norm(constant(x), w, b), dy);
    CHECK(close(w.gradient(), elements(sum(dy * layer_norm(constant(x), {}, {}).value(), {0}))));
    CHECK(close(b.gradient(), elements(sum(dy, {0}))));
  }
}

TEST_CASE("layer norm of one element, of no row, and errors") {
  CHECK(close(layer_norm(constant(vector_of({3})), {}, {}).value(), {0}));
  CHECK(layer_norm(constant(zeros({0, 3})), {}, {}).shape() == Shape{0, 3});
  const auto error = [](const Shape& x, const Tensor& weight, const Tensor& bias, LayerNormForm form = {}) {
    const auto given = [](const Tensor& t) { return t.defined() ? constant(t) : Variable(); };
    return error_of([&] { (void)layer_norm(constant(zeros(x)), given(weight), given(bias), 1e-5, form); });
  };
  CHECK(contains(error({}, {}, {}), "layer_norm: needs at least one axis"));
  CHECK(contains(error({2, 3}, zeros({2}), {}),
                 "layer_norm: weight and bias need shape [3], got [2]\n  input 0: [2, 3]"));
  CHECK(contains(error({2, 3}, {}, zeros({2, 3})), "layer_norm: weight and bias need shape [3], got [2, 3]"));
  CHECK(contains(error({2, 1}, {}, {}, norm_forms[2]), "layer_norm: the unbiased form needs rows of at least 2"));
  CHECK(contains(error({2, 3}, {}, zeros({3}, f64)), "layer_norm: dtypes differ (f32 and f64)"));
}

TEST_CASE("rows of one element have a gradient of 0, however small eps is") {
  Rng rng(4);
  for (const Dtype dtype : {f32, f64}) {
    for (const double eps : {1e-12, 1e-5}) {
      const Variable x = parameter(randn({64, 1}, rng, dtype)), weight = parameter(randn({1}, rng, dtype)),
                     bias = parameter(randn({1}, rng, dtype)), f = parameter(randn({64, 1}, rng, dtype));
      backward(layer_norm(x, weight, bias, eps), randn({64, 1}, rng, dtype));
      backward(residual_norm(x, f, weight, bias, {.eps = eps}), randn({64, 1}, rng, dtype));
      for (i64 i = 0; i < 64; ++i) CHECK(x.gradient().at(i) == 0);
      for (i64 i = 0; i < 64; ++i) CHECK(f.gradient().at(i) == 0);
      CHECK(weight.gradient().item() == 0);
    }
  }
}

TEST_CASE("an eps that is negative or not finite is refused") {
  const Variable x = constant(zeros({2, 3}));
  for (const double eps : {-1.0, -1e-12, double{NAN}, double{INFINITY}}) {
    CAPTURE(eps);
    CHECK(
        contains(error_of([&] { (void)layer_norm(x, {}, {}, eps); }), "layer_norm: eps must be a number of 0 or more"));
    CHECK(contains(error_of([&] { (void)residual_norm(x, x, {}, {}, {.eps = eps}); }),
                   "residual_norm: eps must be a number of 0 or more"));
    CHECK(contains(error_of([&] { (void)rms_norm(x, eps); }), "rms_norm: eps must be a number of 0 or more"));
  }
}

namespace {

// f(2^e x) and 2^e dx must be f(x) and dx, bit for bit: a power of two changes no digit.
template <class F> void check_scales(const F& f, int e, Dtype dtype) {
  CAPTURE(e);
  const double factor = std::ldexp(1.0, e), of_dy = std::ldexp(1.0, e / 2);
  const Tensor x = normal({5, 37}, 3, dtype), dy = normal({5, 37}, 4, dtype);
  const Variable one = parameter(x), scaled = parameter(x * factor);
  const Variable y = f(one), z = f(scaled);
  CHECK(same_bits(z.value(), y.value()));
  backward(y, dy);
  backward(z, dy * of_dy);
  CHECK(same_bits(scaled.gradient() * (factor / of_dy), one.gradient()));
}

}  // namespace

TEST_CASE("promise 14: rows whose squares overflow or vanish are normalised like any other, with their gradients") {
  for (const auto& [dtype, exponents] : {std::pair{f32, std::vector<int>{1, 64, 90, 120, -40, -80, -100}},
                                         std::pair{f64, std::vector<int>{1, 512, 900, -500, -900}}}) {
    const Variable w = constant(normal({37}, 5, dtype)), b = constant(normal({37}, 6, dtype));
    const Variable nothing = constant(zeros({5, 37}, dtype));
    for (const int e : exponents) {
      for (const LayerNormForm form : norm_forms) {
        check_scales([&](const Variable& x) { return layer_norm(x, w, b, 0, form); }, e, dtype);
        check_scales([&](const Variable& x) { return residual_norm(x, nothing, w, b, {.eps = 0, .form = form}); }, e,
                     dtype);
      }
      check_scales([](const Variable& x) { return rms_norm(x, 0); }, e, dtype);
    }
  }
}

TEST_CASE("promise 14: up to the largest numbers of f32, norms with their usual eps are those of f64") {
  const Tensor factors = Tensor::of<double>({6, 1}, {1e10, 1e19, 1e25, 6e37, 1e-3, 1e-10});
  const Variable x = constant((normal({6, 512}, 3) * factors).to(f32)), exact = constant(x.value().to(f64));
  const auto distance = [](const Variable& a, const Variable& b) {
    const Tensor difference = a.value().to(f64) - b.value();
    return std::max(max(difference).item(), max(-difference).item());
  };
  for (const LayerNormForm form : norm_forms)
    CHECK(distance(layer_norm(x, {}, {}, 1e-5, form), layer_norm(exact, {}, {}, 1e-5, form)) <= 4e-6);
  CHECK(distance(rms_norm(x), rms_norm(exact)) <= 4e-6);
  const Variable same = parameter(full({2, 600}, std::ldexp(1.0, 127))), y = layer_norm(same, {}, {});
  CHECK(same_bits(y.value(), zeros({2, 600})));
  backward(y, normal({2, 600}, 5, f32));
  CHECK(all_finite(same.gradient()));
  CHECK(max(same.gradient()).item() > 300);  // 1 / sqrt(eps) times a normal number less the mean of all
}

TEST_CASE("a row is divided by its root mean square") {
  // (3, 4, 0, 0) has the mean square 25 / 4, so its root mean square is 2.5.
  const std::vector<double> x{3, 4, 0, 0};
  CHECK(close(rms_norm(constant(vector_of(x)), 0).value(), {1.2, 1.6, 0, 0}));
  CHECK(close(rms_norm(constant(vector_of(x).to(f32)), 0).value(), {1.2, 1.6, 0, 0}, 1e-6));
  // With eps = 2.75 the divisor is sqrt(9) = 3; rows do not touch each other.
  CHECK(close(rms_norm(constant(Tensor::of<double>({2, 4}, {3, 4, 0, 0, 0, 0, 3, -4})), 2.75).value(),
              {1, 4.0 / 3, 0, 0, 0, 0, 1, -4.0 / 3}));
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
}
