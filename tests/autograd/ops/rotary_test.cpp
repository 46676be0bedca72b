// Chapter 6. Pairs turned by an angle, against complex numbers, and turned back by backward.
#include "autograd/ops/rotary.h"

#include <doctest/doctest.h>

#include <complex>

#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

struct Angles {
  Tensor sine, cosine;
};
Angles angles(i64 n, i64 half) {
  Angles result{Tensor::empty({n, half}, f64), Tensor::empty({n, half}, f64)};
  for (i64 i = 0; i < n; ++i)
    for (i64 c = 0; c < half; ++c) {
      const double angle = 0.3 * static_cast<double>(i) + static_cast<double>(c);
      result.sine(i, c) = std::sin(angle);
      result.cosine(i, c) = std::cos(angle);
    }
  return result;
}

}  // namespace

TEST_CASE("a pair is a complex number times e^(i angle), for every head, and backward turns back") {
  constexpr i64 B = 2, n = 5, h = 3, half = 4;
  const Angles a = angles(n, half);
  const Variable x = parameter(normals({{B, n, h, 2 * half}})[0]);
  const Tensor dy = normal({B, n, h, 2 * half}, 11);
  const Variable y = rotary(x, a.sine, a.cosine);
  backward(y, dy);
  for (i64 b = 0; b < B; ++b)
    for (i64 i = 0; i < n; ++i)
      for (i64 head = 0; head < h; ++head)
        for (i64 c = 0; c < half; ++c) {
          const auto pair = [&](const Tensor& t) {
            return std::complex<double>(t(b, i, head, c), t(b, i, head, half + c));
          };
          const std::complex<double> turn(a.cosine(i, c), a.sine(i, c));
          REQUIRE(std::abs(pair(y.value()) - pair(x.value()) * turn) < 1e-15);
          REQUIRE(std::abs(pair(x.gradient()) - pair(dy) * std::conj(turn)) < 1e-15);
        }
}

TEST_CASE("sines that are changed after forward are an error in backward") {
  Angles a = angles(5, 2);
  const Variable y = rotary(parameter(normals({{1, 5, 1, 4}})[0]), a.sine, a.cosine);
  a.sine(0, 0) = 1;
  CHECK(contains(error_of([&] { backward(sum(y)); }), "was changed in place after forward"));
}

TEST_CASE("rows of an odd length, and sines that do not fit, are errors") {
  const Angles a = angles(5, 2);
  const auto error = [&](const Shape& x, const Tensor& sine, Dtype dtype = f64) {
    const std::string text = error_of([&] { rotary(constant(zeros(x, dtype)), sine, a.cosine); });
    return text.substr(0, text.find('\n'));
  };
  CHECK(error({1, 5, 1, 3}, a.sine) == "rotary: needs an even number of columns, has 3");
  CHECK(error({1, 5, 1, 4}, a.sine.rows(0, 4)) == "rotary: needs sines and cosines of shape [5, 2], got [4, 2]");
  CHECK(error({1, 5, 1, 4}, a.sine, f32) == "rotary: dtypes differ (f32 and f64)");
  CHECK(error({5, 1, 4}, a.sine) != "");
}
