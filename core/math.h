// Chapter 8. exp, tanh, erf and sigmoid that the compiler can turn into vector instructions.
//
// For float: polynomials without branches or tables, at most 2 units in the last place from the exact value (the tests
// compare with libm in double). For double: libm, since gradient checks need accuracy and not speed.
// Method: bring the argument into a short interval, where a polynomial fitted for the smallest worst error suffices.
// Read next: core/reduce.h
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "core/dtype.h"

namespace orrery::math {

inline double exp(double x) { return std::exp(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }

/// e^x = 2^n e^r with n the integer nearest to x / ln 2, so that |r| <= ln 2 / 2. Zero where the result is denormal.
inline float exp(float x) {
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
inline float tanh(float x) {
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

/// erf x = x + x P(x^2) near zero, 1 - e^{-t + t Q(t)} with t = |x| and the sign of x elsewhere; 1 from t = 4 on.
inline float erf(float x) {
  const float s = x * x, size = std::fabs(x), t = size > 4.0F ? 4.0F : size;
  float p = 8.34947205e-5F;
  p = p * s - 8.13821738e-4F;
  p = p * s + 5.20067895e-3F;
  p = p * s - 2.68592760e-2F;
  p = p * s + 1.12836935e-1F;
  p = p * s - 3.76126349e-1F;
  p = p * s + 1.28379166e-1F;
  float q = 2.71260774e-7F;
  q = q * t - 4.37158678e-6F;
  q = q * t + 1.16627116e-5F;
  q = q * t + 2.81793007e-4F;
  q = q * t - 3.68523551e-3F;
  q = q * t + 2.40509044e-2F;
  q = q * t - 1.06703267e-1F;
  q = q * t - 6.34817481e-1F;
  q = q * t - 1.28739744e-1F;
  const float small = x + x * p;
  const float large = std::copysign(1.0F - exp(t * q - t), x);
  const float y = size < 0.927734375F ? small : large;
  return x != x ? x : y;
}

/// 1 / (1 + e^{-x}), exact to rounding at both ends: e^{-x} may be infinite, its reciprocal is then zero.
template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + exp(-x));
}

}  // namespace orrery::math
