// Chapter 8. exp, tanh, the normal distribution and sigmoid that the compiler can turn into vector instructions.
//
// For float: polynomials without branches or tables; exp and tanh at most 2 units in the last place from the exact
// value (the tests compare with libm in double). For double: libm, since gradient checks need accuracy and not speed.
// Method: bring the argument into a short interval, where a polynomial fitted for the smallest worst error suffices.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/dtype.h"

namespace orrery::math {

static inline double exp(double x) { return std::exp(x); }
static inline double tanh(double x) { return std::tanh(x); }

/// x, or a 0 of its sign if x is denormal: below 1.2e-38 in float, 2.2e-308 in double. Kernels treat such numbers as 0
/// (core/machine/parallel.h). libm, the C library's functions, ignores that setting, so denormals are replaced by 0
/// before the call.
template <class T> static T flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T{0}, x) : x;
}

/// ln x and x^p, with a denormal x or result treated as 0, whose ln is -infinity.
template <class T> static T log(T x) { return std::log(flushed(x)); }
template <class T> static T pow(T x, T p) { return flushed(std::pow(flushed(x), p)); }

/// e^x = 2^n e^r with n the integer nearest to x / ln 2 and r = x - n ln 2, so that |r| <= ln 2 / 2. Zero where the
/// result is denormal. ln 2 is split in two (Cody, Waite 1980): n ln2_high is exact, so r loses no digits.
static inline float exp(float x) {
  constexpr float log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  constexpr float round = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  constexpr float lowest = -87.33654F, highest = 88.72283F;
  const float clamped = x < lowest ? lowest : (x > highest ? highest : x);
  const float shifted = clamped * log2_e + round;
  const float n = shifted - round;
  const float r = clamped - n * ln2_high - n * ln2_low;
  float p = 1.98910799e-4F;
  p = p * r + 1.39337312e-3F;
  p = p * r + 8.33331048e-3F;
  p = p * r + 4.16664630e-2F;
  p = p * r + 1.66666672e-1F;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  // 2^n in two factors, since 2^128 alone is not a float.
  const i32 exponent = std::bit_cast<i32>(shifted) - std::bit_cast<i32>(round);
  const i32 half = exponent >> 1;
  const float y = p * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((exponent - half + 127) << 23);
  const float inside = x < lowest ? 0.0F : (x > highest ? std::numeric_limits<float>::infinity() : y);
  return x != x ? x : inside;
}

/// tanh x = x + x^3 P(x^2) near zero, 1 - 2 / (e^{2|x|} + 1) with the sign of x elsewhere.
static inline float tanh(float x) {
  const float t = std::fabs(x), s = x * x;
  float p = 2.29274482e-3F;
  p = p * s - 8.34394526e-3F;
  p = p * s + 2.17689183e-2F;
  p = p * s - 5.39592579e-2F;
  p = p * s + 1.33333042e-1F;
  p = p * s - 3.33333343e-1F;
  const float small = x + x * s * p;
  const float large = std::copysign(1.0F - 2.0F / (exp(2.0F * t) + 1.0F), x);
  return t < 0.625F ? small : large;
}

/// What GELU needs of the normal distribution N(0, 1).
template <class T> struct Normal {
  T cdf;  ///< Phi(x), the probability of a number below x
  T pdf;  ///< phi(x) = e^{-x^2 / 2} / sqrt(2 pi), its density
};

static inline Normal<double> normal(double x) {
  return {0.5 * std::erfc(-x / std::numbers::sqrt2), std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi)};
}

/// Both from one exp: the tail beyond |x| is e^{-x^2 / 2} P(t) with t = 1 / (1 + 0.3 |x|), where P has a relative error
/// of 5e-7. The cdf is within 12 units in the last place for x >= -3. Below that, the rounding of x^2 / 2 causes
/// relative errors of up to 1e-5, and below -13 the cdf is 0.
static inline Normal<float> normal(float x) {
  const float size = std::fabs(x), bell = exp(-0.5F * x * x), t = 1.0F / (1.0F + 0.3F * size);
  float p = 0.0382709503F;
  p = p * t - 0.168643281F;
  p = p * t + 0.227577493F;
  p = p * t - 0.0752649531F;
  p = p * t + 0.141675308F;
  p = p * t + 0.0950512812F;
  p = p * t + 0.121825844F;
  p = p * t + 0.119501002F;
  p = p * t + 6.38282199e-06F;
  const float tail = bell * p;
  return {x < 0.0F ? tail : 1.0F - tail, bell * 0.398942280F};
}

/// 1 / (1 + e^{-x}), exact to rounding at both ends: e^{-x} may be infinite, its reciprocal is then zero.
template <class T> static T sigmoid(T x) { return T{1} / (T{1} + exp(-x)); }

}  // namespace orrery::math
