// Chapter 8. exp, log, tanh, the normal distribution and sigmoid that the compiler can turn into vector instructions.
//
// Polynomials without branches or tables: exp, log and tanh are at most 2 units in the last place from the exact value,
// in float and in double (the tests compare with libm in a wider type). pow, and the normal distribution in double, are
// libm's. Method: bring the argument into a short interval, where a polynomial fitted for the smallest worst error
// suffices.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/dtype.h"

namespace orrery::math {

/// x, or a 0 of its sign if x is denormal: below 1.2e-38 in float, 2.2e-308 in double. Kernels treat such numbers as 0
/// (core/machine/parallel.h). libm, the C library's functions, ignores that setting, so denormals are replaced by 0
/// before the call.
template <class T> static T flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T{0}, x) : x;
}

/// x^p, with a denormal x or result treated as 0.
template <class T> static T pow(T x, T p) { return flushed(std::pow(flushed(x), p)); }

/// ln 2 in two parts (Cody, Waite 1980). n ln2_high is exact for the exponent n of a number, so x - n ln 2 loses no
/// digits.
template <class T> inline constexpr T ln2_high = T{0.693359375F};
template <class T> inline constexpr T ln2_low = T{-2.12194440e-4F};
template <> inline constexpr double ln2_high<double> = 6.93147180369123816e-01;
template <> inline constexpr double ln2_low<double> = 1.90821492927058770e-10;

/// e^x = 2^n e^r with n the integer nearest to x / ln 2 and r = x - n ln 2, so that |r| <= ln 2 / 2. Zero where the
/// result is denormal.
static inline float exp(float x) {
  constexpr float log2_e = 1.44269504F;
  constexpr float round = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  constexpr float lowest = -87.33654F, highest = 88.72283F;
  const float shifted = x * log2_e + round;
  const float n = shifted - round;
  const float r = x - n * ln2_high<float> - n * ln2_low<float>;
  float p = 1.98910799e-4F;
  p = p * r + 1.39337312e-3F;
  p = p * r + 8.33331048e-3F;
  p = p * r + 4.16664630e-2F;
  p = p * r + 1.66666672e-1F;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  // n is added to the exponent of p: 2^n would not be a float for n = 128, where p < 1.
  const float y = std::bit_cast<float>(std::bit_cast<u32>(p) + (std::bit_cast<u32>(shifted) << 23));
  const float inside = x < lowest ? 0.0F : y;
  return x <= highest ? inside : x + std::numeric_limits<float>::infinity();  // NaN stays NaN
}

/// The same in double.
static inline double exp(double x) {
  constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
  constexpr double lowest = -708.39641853226408, highest = 709.78271289338397;
  const double shifted = x * std::numbers::log2e + round;
  const double n = shifted - round;
  const double r = x - n * ln2_high<double> - n * ln2_low<double>;
  double p = 2.5045972528308765e-08;
  p = p * r + 2.7622359107718738e-07;
  p = p * r + 2.7557425252071505e-06;
  p = p * r + 2.4801516045544257e-05;
  p = p * r + 1.9841269707784046e-04;
  p = p * r + 1.3888888920729160e-03;
  p = p * r + 8.3333333333887507e-03;
  p = p * r + 4.1666666666619445e-02;
  p = p * r + 1.6666666666666602e-01;
  p = p * r + 0.5;
  p = p * r * r + r + 1.0;
  const double y = std::bit_cast<double>(std::bit_cast<u64>(p) + (std::bit_cast<u64>(shifted) << 52));
  const double inside = x < lowest ? 0.0 : y;
  return x <= highest ? inside : x + std::numeric_limits<double>::infinity();
}

/// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for a normal x > 0.
template <class T> struct BinaryParts { T k, m; };
static inline BinaryParts<float> binary_parts(float x) {
  constexpr u32 one = std::bit_cast<u32>(1.0F), low = std::bit_cast<u32>(0.707106769F);
  const u32 biased = std::bit_cast<u32>(x) + (one - low);
  return {static_cast<float>(static_cast<i32>(biased >> 23) - 127), std::bit_cast<float>((biased & 0x007F'FFFF) + low)};
}
static inline BinaryParts<double> binary_parts(double x) {
  constexpr u64 one = std::bit_cast<u64>(1.0), low = std::bit_cast<u64>(0.70710678118654746);
  constexpr double shift = 4503599627370496.0;  // 2^52: an integer in its low bits is added to it
  const u64 biased = std::bit_cast<u64>(x) + (one - low);
  return {std::bit_cast<double>(biased >> 52 | std::bit_cast<u64>(shift)) - (shift + 1023),
          std::bit_cast<double>((biased & 0x000F'FFFF'FFFF'FFFF) + low)};
}

/// (2 atanh(s) - 2s) / s^3 of z = s^2, for |s| <= 0.172.
static inline float atanh_series(float z) { return (0.298719958F * z + 0.399775324F) * z + 0.666667764F; }
static inline double atanh_series(double z) {
  double p = 0.14796261034087932;
  p = p * z + 0.15314021178760628;
  p = p * z + 0.18183565402510232;
  p = p * z + 0.22222198553939079;
  p = p * z + 0.28571428742559801;
  p = p * z + 0.39999999999413982;
  return p * z + 0.66666666666667340;
}

/// ln x = k ln 2 + ln m. With f = m - 1, which is exact, and s = f / (2 + f):
///   ln m = 2 atanh s = 2s + s^3 P(s^2) = f - s (f - s^2 P(s^2))
/// A denormal x counts as 0, whose ln is -infinity.
template <class T> static T log(T x) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::min();
  const auto [k, m] = binary_parts(x);
  const T f = m - T{1}, s = f / (T{2} + f), z = s * s;
  const T y = k * ln2_high<T> - ((s * (f - z * atanh_series(z)) - k * ln2_low<T>)-f);
  const T beyond = x > -least ? -infinity : std::numeric_limits<T>::quiet_NaN();
  const T finite = x >= least ? y : beyond;
  return x < infinity ? finite : x;
}

/// tanh x = x + x^3 P(x^2) near zero, 1 - 2 / (e^{2|x|} + 1) with the sign of x elsewhere. In float,
/// e^{2t} = 2^n e^{2r} with n the integer nearest to 2t / ln 2, and a shorter polynomial than that of `exp`: an error
/// of it counts half.
static inline float tanh(float x) {
  const float t = std::fabs(x), s = x * x;
  float p = 1.64490044e-2F;
  p = p * s - 5.26776274e-2F;
  p = p * s + 1.33208126e-1F;
  p = p * s - 3.33329503e-1F;
  const float small = x + x * s * p;
  constexpr float round = 12582912.0F, most = 10.0F;  // from 9.02 on, tanh rounds to 1
  const float inside = t > most ? most : t, shifted = inside * 2.88539008F + round;
  const float r = inside - (shifted - round) * 0.346573590F;
  float e = 8.85987828e-2F;
  e = e * r + 2.67975550e-1F;
  e = e * r + 6.66688119e-1F;
  e = e * r + 1.33331443F;
  e = e * r + 1.99999977F;
  e = e * r + 2.00000006F;
  e = e * r + 1.0F;
  e = std::bit_cast<float>(std::bit_cast<u32>(e) + (std::bit_cast<u32>(shifted) << 23));
  return t < 0.5493F ? small : std::copysign(1.0F - 2.0F / (e + 1.0F), x);
}
static inline double tanh(double x) {
  const double t = std::fabs(x), s = x * x;
  double p = -1.6029143674294445e-05;
  p = p * s + 7.7055530268158905e-05;
  p = p * s - 2.2848599040916004e-04;
  p = p * s + 5.8627776979261253e-04;
  p = p * s - 1.4549470019590289e-03;
  p = p * s + 3.5919868509719675e-03;
  p = p * s - 8.8632207132073072e-03;
  p = p * s + 2.1869487553876351e-02;
  p = p * s - 5.3968253930291907e-02;
  p = p * s + 1.3333333333259981e-01;
  p = p * s - 3.3333333333332837e-01;
  const double small = t + t * s * p, large = 1.0 - 2.0 / (exp(2.0 * t) + 1.0);
  return std::copysign(t < 0.625 ? small : large, x);
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
