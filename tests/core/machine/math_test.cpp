// Chapter 8. Tests of exp, log, tanh, the normal distribution and sigmoid against libm in a wider type, over dense
// grids and at the ends; and of vectors.
#include "core/machine/math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cfloat>
#include <vector>

#include "core/machine/vector.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

template <class T> using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

// |value - exact| in units of the last place of T at `exact`.
template <class T> double ulps(T value, Wider<T> exact) {
  using Limits = std::numeric_limits<T>;
  if (static_cast<Wider<T>>(value) == exact) return 0;
  const auto unit =
      std::ldexp(Wider<T>{1}, std::max(std::ilogb(exact), Limits::min_exponent - 1) - (Limits::digits - 1));
  return static_cast<double>(std::abs(static_cast<Wider<T>>(value) - exact) / unit);
}

// The worst error over `steps` points of [low, high].
template <class T = float, class F, class Exact> double worst(F f, Exact exact, double low, double high, int steps) {
  double result = 0;
  for (int i = 0; i <= steps; ++i) {
    const T x = static_cast<T>(low + (high - low) * i / steps);
    result = small::worse(result, ulps<T>(f(x), exact(static_cast<Wider<T>>(x))));
  }
  return result;
}

// The same over every power of two and its neighbours, from 2^first to 2^last, of both signs if `negative`.
template <class T = float, class F, class Exact>
double worst_near_powers(F f, Exact exact, int first = -100, int last = 10, bool negative = true) {
  double result = 0;
  for (int exponent = first; exponent <= last; ++exponent) {
    const T power = std::ldexp(T{1}, exponent), beyond = std::numeric_limits<T>::infinity();
    for (const T x : {power, std::nextafter(power, T{0}), std::nextafter(power, beyond), T{1.5F} * power}) {
      for (const T signed_x : {x, negative ? -x : x}) {
        if (std::fabs(x) < std::numeric_limits<T>::min()) continue;
        result = small::worse(result, ulps<T>(f(signed_x), exact(static_cast<Wider<T>>(signed_x))));
      }
    }
  }
  return result;
}

constexpr auto f_exp = [](float x) { return math::exp(x); };
constexpr auto f_tanh = [](float x) { return math::tanh(x); };
constexpr auto d_exp = [](double x) { return std::exp(x); };
constexpr auto d_tanh = [](double x) { return std::tanh(x); };

}  // namespace

TEST_CASE("the worst error of a range in which one value is NaN is infinite, wherever it stands") {
  const auto wrong_at = [](float bad) { return [bad](float x) { return x == bad ? NAN : math::exp(x); }; };
  for (const float bad : {0.0F, 0.5F, 1.0F}) CHECK(worst(wrong_at(bad), d_exp, 0, 1, 4) == infinity);
  CHECK(worst_near_powers(wrong_at(1.0F), d_exp) == infinity);
  CHECK(worst(f_exp, d_exp, 0, 1, 4) < 1);
}

TEST_CASE("float exp is within 2 units in the last place of libm") {
  CHECK(worst(f_exp, d_exp, -87.3365, 88.7228, 1'000'000) <= 2);
  CHECK(worst(f_exp, d_exp, -1, 1, 300'000) <= 2);
}

TEST_CASE("float exp never falls where its argument grows by a step of the grid") {
  bool rises = true;
  float before = 0;
  for (int i = -8700; i <= 8870; ++i) {
    const float y = math::exp(static_cast<float>(i) * 0.01F);
    rises = rises && y > before;
    before = y;
  }
  CHECK(rises);
}

TEST_CASE("float tanh is within 2 units in the last place of libm") {
  CHECK(worst(f_tanh, d_tanh, -10, 10, 1'000'000) <= 2);
  CHECK(worst(f_tanh, d_tanh, -0.7, 0.7, 500'000) <= 2);
  CHECK(worst_near_powers(f_tanh, d_tanh) <= 2);
}

TEST_CASE("the normal distribution in float: its tail and its density keep their digits, its body too") {
  const auto cdf = [](float x) { return math::normal(x).cdf; };
  const auto pdf = [](float x) { return math::normal(x).pdf; };
  const auto exact_cdf = [](double x) { return math::normal(x).cdf; };
  const auto exact_pdf = [](double x) { return math::normal(x).pdf; };
  CHECK(worst(cdf, exact_cdf, -3, 8, 1'000'000) <= 12);
  CHECK(worst(pdf, exact_pdf, -3, 3, 500'000) <= 8);
  // The rounding of x^2 / 2 grows with it, as e^{-x^2 / 2} becomes small.
  CHECK(worst(cdf, exact_cdf, -12, -3, 500'000) <= 100);
  CHECK(worst(pdf, exact_pdf, -12, 12, 500'000) <= 100);
}

TEST_CASE("the normal distribution at its ends") {
  CHECK(std::abs(math::normal(0.0F).cdf - 0.5F) <= FLT_EPSILON);
  CHECK(math::normal(0.0F).pdf == 0.398942280F);
  for (const float far : {20.0F, FLT_MAX, infinity}) {
    CHECK(math::normal(far).cdf == 1.0F);
    CHECK(math::normal(-far).cdf == 0.0F);
    CHECK(math::normal(far).pdf == 0.0F);
  }
  CHECK(std::isnan(math::normal(nan_value).cdf));
  CHECK(std::isnan(math::normal(nan_value).pdf));
}

TEST_CASE("the normal distribution in double") {
  for (const double x : {-9.0, -1.0, -0.25, 0.0, 0.5, 3.0}) {
    CHECK(math::normal(x).cdf == doctest::Approx(0.5 * (1 + std::erf(x / std::sqrt(2.0)))).epsilon(1e-15));
    CHECK(math::normal(x).pdf == doctest::Approx(0.3989422804014327 * std::exp(-x * x / 2)).epsilon(1e-14));
  }
  CHECK(math::normal(-30.0).cdf == doctest::Approx(4.906713927148187e-198).epsilon(1e-12));
}

TEST_CASE("sigmoid reaches 0 and 1 without leaving them") {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(worst([](float x) { return math::sigmoid(x); }, exact, -80, 80, 300'000) <= 4);
  CHECK(math::sigmoid(0.0F) == 0.5F);
  CHECK(math::sigmoid(-200.0F) == 0.0F);
  CHECK(math::sigmoid(200.0F) == 1.0F);
  CHECK(math::sigmoid(-infinity) == 0.0F);
  CHECK(math::sigmoid(infinity) == 1.0F);
  CHECK(math::sigmoid(-800.0) == 0.0);
  CHECK(math::sigmoid(800.0) == 1.0);
  CHECK(std::isnan(math::sigmoid(nan_value)));
}

TEST_CASE("exp, log and tanh of a double are within 2 units in the last place of libm's long double") {
  const auto exp_of = [](double x) { return math::exp(x); };
  const auto exact_exp = [](long double x) { return std::exp(x); };
  CHECK(worst<double>(exp_of, exact_exp, -708.39, 709.78, 300'000) <= 2);
  CHECK(worst<double>(exp_of, exact_exp, -1, 1, 300'000) <= 2);
  CHECK(worst_near_powers<double>(exp_of, exact_exp, -1000, 8) <= 2);
  const auto tanh_of = [](double x) { return math::tanh(x); };
  const auto exact_tanh = [](long double x) { return std::tanh(x); };
  CHECK(worst<double>(tanh_of, exact_tanh, -21, 21, 300'000) <= 2);
  CHECK(worst<double>(tanh_of, exact_tanh, -0.7, 0.7, 300'000) <= 2);
  CHECK(worst_near_powers<double>(tanh_of, exact_tanh, -1000, 1000) <= 2);
  const auto log_of = [](double x) { return math::log(x); };
  const auto exact_log = [](long double x) { return std::log(x); };
  CHECK(worst<double>(log_of, exact_log, 0.4, 2.5, 300'000) <= 2);
  CHECK(worst<double>(log_of, exact_log, 2.5, 1e6, 300'000) <= 2);
  CHECK(worst_near_powers<double>(log_of, exact_log, -1022, 1023, false) <= 2);
}

TEST_CASE("float log is within 2 units in the last place of libm") {
  const auto log_of = [](float x) { return math::log(x); };
  const auto exact = [](double x) { return std::log(x); };
  CHECK(worst(log_of, exact, 0.4, 2.5, 1'000'000) <= 2);
  CHECK(worst(log_of, exact, 2.5, 1e6, 300'000) <= 2);
  CHECK(worst_near_powers(log_of, exact, -126, 127, false) <= 2);
}

namespace {

template <class T> void check_ends() {
  using Limits = std::numeric_limits<T>;
  constexpr T beyond = Limits::infinity(), most = Limits::max(), nan = Limits::quiet_NaN();
  CHECK(math::exp(T{0}) == T{1});
  CHECK(math::exp(Limits::denorm_min()) == T{1});
  for (const T x : {beyond, most}) {
    CHECK(math::exp(x) == beyond);
    CHECK(math::exp(-x) == T{0});
    CHECK_FALSE(std::signbit(math::exp(-x)));
    CHECK(math::tanh(x) == T{1});
    CHECK(math::tanh(-x) == T{-1});
  }
  // The ends of what exp can give: ln of the largest number, and of the smallest one that is normal.
  const T last = std::log(most), first = std::log(Limits::min());
  CHECK(math::exp(std::nextafter(last, T{0})) < beyond);
  CHECK(math::exp(std::nextafter(last, beyond)) == beyond);
  CHECK(math::exp(std::nextafter(std::nextafter(first, T{0}), T{0})) >= Limits::min());
  CHECK(math::exp(std::nextafter(std::nextafter(first, -beyond), -beyond)) == T{0});
  if (sizeof(T) == sizeof(double)) CHECK(std::signbit(math::tanh(T{-0.0F})));  // in float it is 0
  CHECK_FALSE(std::signbit(math::tanh(T{0})));
  CHECK(math::log(T{1}) == T{0});
  CHECK(math::log(T{0}) == -beyond);
  CHECK(math::log(T{-0.0F}) == -beyond);
  CHECK(math::log(beyond) == beyond);
  for (const T x : {T{-1}, -Limits::min(), -most, -beyond, nan}) CHECK(std::isnan(math::log(x)));
  CHECK(std::isnan(math::exp(nan)));
  CHECK(std::isnan(math::tanh(nan)));
}

}  // namespace

TEST_CASE("exp, log and tanh at their ends, in both dtypes") {
  check_ends<float>();
  check_ends<double>();
}

TEST_CASE("vector code of doubles has the bits of one call") {
  constexpr size_t n = 4099;
  std::vector<double> x(n), y(n), z(n);
  for (size_t i = 0; i < n; ++i) x[i] = -720 + 1440 * static_cast<double>(i) / n;
  x[5] = std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < n; ++i) {
    y[i] = math::exp(x[i]);
    z[i] = math::log(x[i]) + math::tanh(x[i] / 50);
  }
  bool equal = true;
  for (size_t i = 0; i < n; ++i) {
    const volatile double one = x[i];  // read one by one, so that this loop stays scalar
    const double of_exp = math::exp(one), of_both = math::log(one) + math::tanh(one / 50);
    equal = equal && (std::isnan(one) || of_exp == y[i]) && (std::isnan(of_both) ? std::isnan(z[i]) : of_both == z[i]);
  }
  CHECK(equal);
}

TEST_CASE("vector code gives what one call gives") {
  constexpr int n = 4096;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[static_cast<size_t>(i)] = -90.0F + 180.0F * static_cast<float>(i) / n;
  for (size_t i = 0; i < x.size(); ++i) y[i] = math::exp(x[i]) + math::tanh(x[i]) + math::normal(x[i]).cdf;
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const volatile float one = x[i];  // read one by one, so that this loop stays scalar
    const float expected = math::exp(one) + math::tanh(one) + math::normal(one).cdf;
    if (expected == y[i]) continue;
    largest = small::worse(largest, static_cast<double>(std::abs(y[i] - expected) / std::abs(expected)));
  }
  CHECK(largest <= 4 * FLT_EPSILON);
}

namespace {

// log and pow of a denormal number are those of 0 of its sign.
template <class T> void check_denormals() {
  using Limits = std::numeric_limits<T>;
  for (const T x : {Limits::denorm_min(), Limits::min() / 4, std::nextafter(Limits::min(), T{0})}) {
    CHECK(math::log(x) == -Limits::infinity());
    CHECK(math::log(-x) == -Limits::infinity());
    for (const T p : {T{2}, T{1}, T{0.5}}) CHECK(math::pow(x, p) == T{0});
    CHECK(math::pow(x, T{0}) == T{1});
    CHECK(math::pow(x, T{-1}) == Limits::infinity());
    CHECK(math::pow(-x, T{-1}) == -Limits::infinity());
    CHECK(std::signbit(math::pow(-x, T{3})));
    CHECK(math::flushed(x) == T{0});
  }
  CHECK(math::log(Limits::min()) == std::log(Limits::min()));
  CHECK(math::flushed(Limits::min()) == Limits::min());
  CHECK(math::flushed(-Limits::infinity()) == -Limits::infinity());
  CHECK(std::isnan(math::flushed(Limits::quiet_NaN())));
  CHECK(math::pow(std::sqrt(Limits::min()), T{2.5}) == T{0});  // a result that would be denormal
}

}  // namespace

TEST_CASE("log and pow take denormal numbers as 0, in both dtypes") {
  check_denormals<float>();
  check_denormals<double>();
}

namespace {

template <class T, size_t count = vector_bytes / sizeof(T)> void check_lanes() {
  using V = VectorOf<T, count>;
  using Vector = typename V::type;
  alignas(vector_bytes) T memory[2 * V::lanes + 2];
  T *x = memory + 1, *y = x + V::lanes;  // at no vector's address
  for (i64 i = 0; i < V::lanes; ++i) x[i] = static_cast<T>(i) + T{0.5};
  Vector v = load<Vector>(x);
  if constexpr (sizeof(Vector) == vector_bytes) keep_in_register(v);
  v = v * v + v;
  store(v, y);
  for (i64 i = 0; i < V::lanes; ++i) CHECK(y[i] == x[i] * x[i] + x[i]);
}

}  // namespace

TEST_CASE("arithmetic on a vector is done for every lane") {
  CHECK(VectorOf<float>::lanes == 2 * VectorOf<double>::lanes);
  check_lanes<float>();
  check_lanes<float, 4>();
  check_lanes<double>();
}
