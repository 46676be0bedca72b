// Chapter 1. Creating tensors, adding and multiplying them.
#include <bit>
#include <cmath>
#include <utility>

#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

template <class Value> Tensor filled(const Shape& shape, Dtype dtype, const Value& value_at) {
  Tensor y = Tensor::empty(shape, dtype);
  dispatch(dtype, [&](auto t) {
    using T = decltype(t);
    T* out = y.write<T>();
    for (i64 i = 0; i < y.count(); ++i) out[i] = static_cast<T>(value_at(i));
  });
  return y;
}

void check_alike(const Tensor& a, const Tensor& b, std::string_view operation) {
  check(a.defined() && b.defined(), operation, "needs two tensors");
  check(a.shape() == b.shape(), operation, "shapes differ (", a.shape(), " and ", b.shape(), ")");
  check(a.dtype() == b.dtype(), operation, "dtypes differ (", a.dtype(), " and ", b.dtype(), ")");
}

// Error: the two overlap in part, so that one thread would overwrite what another has still to read. Equal memory is
// fine.
void check_no_part_shared(const Tensor& a, const Tensor& b, std::string_view operation) {
  if (!a.overlaps(b)) return;
  const bool same = dispatch(a.dtype(), [&](auto t) { return a.data<decltype(t)>() == b.data<decltype(t)>(); });
  check(same, operation, "the two tensors overlap in memory without being the same");
}

// c = m 2^e with 1/2 <= |m| < 1, for a finite c that is not 0. A processor may take subnormal numbers for 0, depending
// on a mode of the host program; so their bits are read as an integer.
std::pair<double, int> mantissa_and_exponent(double c) {
  constexpr int stored_bits = 52, smallest_exponent = -1074;
  constexpr u64 stored = (u64{1} << stored_bits) - 1;
  const u64 bits = std::bit_cast<u64>(c);
  const bool subnormal = (bits >> stored_bits & 0x7FF) == 0;
  int e = 0;
  if (!subnormal) return {std::frexp(c, &e), e};
  const double m = std::frexp(static_cast<double>(bits & stored), &e);
  return {std::copysign(m, c), e + smallest_exponent};
}

bool is_zero(double c) { return std::bit_cast<u64>(c) << 1 == 0; }  // no subnormal number, whatever the mode

// y[i] = f(x[i], c), a product or quotient, for i in [0, n); y may be x. A number c that is not normal in T would count
// as 0 or infinity. It is split, c = m 2^e with 1/2 <= |m| < 1. f(x, m) is then computed in double and multiplied by
// 2^e, or by 2^-e if f divides by c; in two steps, since 2^e may not be a double either.
template <class T, class F> void with_number(i64 n, const T* x, T* y, double c, bool divides_by_c, F f) {
  if (is_normal(c, dtype_of<T>) || is_zero(c) || !std::isfinite(c))
    return map<T>(n, x, y, [f, c = static_cast<T>(c)](T a) { return f(a, c); });
  auto [m, e] = mantissa_and_exponent(c);
  if (divides_by_c) e = -e;
  const double first = std::ldexp(1.0, e / 2), second = std::ldexp(1.0, e - e / 2);
  map<T>(n, x, y, [=, m = m](T a) { return static_cast<T>(f(static_cast<double>(a), m) * first * second); });
}

template <class F> Tensor with_number(const Tensor& x, std::string_view operation, double c, bool divides_by_c, F f) {
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), operation, [&](auto t) {
    using T = decltype(t);
    with_number<T>(x.count(), x.data<T>(), y.write<T>(), c, divides_by_c, f);
  });
  return y;
}

constexpr auto product = [](auto a, auto b) { return a * b; };

}  // namespace

Tensor zeros(const Shape& shape, Dtype dtype) { return full(shape, 0.0, dtype); }

Tensor full(const Shape& shape, double value, Dtype dtype) {
  Tensor y = Tensor::empty(shape, dtype);
  fill(y, value);
  return y;
}

Tensor arange(i64 n) {
  check(n <= i64{1} << 31, "arange", "its numbers do not fit into i32: ", n);
  return filled({n}, Dtype::i32, [](i64 i) { return i; });
}

Tensor randn(const Shape& shape, Rng& rng, Dtype dtype) {
  check(is_floating(dtype), "randn", "needs f32 or f64, got ", dtype);
  if (rng.draws_shapes()) return Tensor::outline(shape, dtype);
  if (rng.draws_zeros()) return zeros(shape, dtype);
  return filled(shape, dtype, [&](i64) { return rng.normal(); });
}

Tensor rand_uniform(const Shape& shape, double low, double high, Rng& rng, Dtype dtype) {
  check(is_floating(dtype), "rand_uniform", "needs f32 or f64, got ", dtype);
  if (rng.draws_shapes()) return Tensor::outline(shape, dtype);
  if (rng.draws_zeros()) return zeros(shape, dtype);
  return filled(shape, dtype, [&](i64) { return low + (high - low) * rng.uniform(); });
}

Tensor randint(i64 low, i64 high, const Shape& shape, Rng& rng) {
  constexpr i64 end_of_i32 = i64{1} << 31;  // `high` itself is not drawn, so it may be one more than the largest i32
  check(low >= -end_of_i32 && high <= end_of_i32, "randint", "the range does not fit into i32");
  return filled(shape, Dtype::i32, [&](i64) { return rng.integer(low, high); });
}

Tensor add(const Tensor& a, const Tensor& b) {
  return broadcast_map(a, b, "add", [](auto x, auto y) { return x + y; });
}
Tensor sub(const Tensor& a, const Tensor& b) {
  return broadcast_map(a, b, "sub", [](auto x, auto y) { return x - y; });
}
Tensor mul(const Tensor& a, const Tensor& b) {
  return broadcast_map(a, b, "mul", [](auto x, auto y) { return x * y; });
}
Tensor div(const Tensor& a, const Tensor& b) {
  return broadcast_map(a, b, "div", [](auto x, auto y) { return x / y; });
}
Tensor div(const Tensor& x, double c) {
  return with_number(x, "div", c, true, [](auto a, auto b) { return a / b; });
}
Tensor div(double c, const Tensor& x) {
  return with_number(x, "div", c, false, [](auto a, auto b) { return b / a; });
}
Tensor scale(const Tensor& x, double factor) { return with_number(x, "scale", factor, false, product); }

void add_in_place(Tensor& y, const Tensor& x) {
  check_alike(y, x, "add_in_place");
  check_no_part_shared(y, x, "add_in_place");
  dispatch_floating(y.dtype(), "add_in_place", [&](auto t) {
    using T = decltype(t);
    T* out = y.write<T>();
    map<T>(y.count(), out, x.data<T>(), out, [](T a, T b) { return a + b; });
  });
}

void lerp_in_place(Tensor& y, const Tensor& x, double weight) {
  check_alike(y, x, "lerp_in_place");
  check_no_part_shared(y, x, "lerp_in_place");
  dispatch_floating(y.dtype(), "lerp_in_place", [&](auto t) {
    using T = decltype(t);
    T* out = y.write<T>();
    map<T>(y.count(), out, x.data<T>(), out, [w = static_cast<T>(weight)](T a, T b) { return a + w * (b - a); });
  });
}

void scale_in_place(Tensor& y, double factor) {
  dispatch_floating(y.dtype(), "scale_in_place", [&](auto t) {
    using T = decltype(t);
    T* out = y.write<T>();
    with_number<T>(y.count(), out, out, factor, false, product);
  });
}

void fill(Tensor& y, double value) {
  check_fits(value, y.dtype());
  dispatch(y.dtype(), [&](auto t) {
    using T = decltype(t);
    T* out = y.write<T>();
    parallel_for(y.count(), 4 * elementwise_grain,
                 [=](i64 begin, i64 end) { std::fill(out + begin, out + end, static_cast<T>(value)); });
  });
}

void copy_into(Tensor& to, const Tensor& from) {
  check_alike(to, from, "copy_into");
  check_no_part_shared(to, from, "copy_into");
  dispatch(to.dtype(), [&](auto t) {
    using T = decltype(t);
    T* out = to.write<T>();
    const T* in = from.data<T>();
    parallel_for(to.count(), 4 * elementwise_grain,
                 [=](i64 begin, i64 end) { std::copy(in + begin, in + end, out + begin); });
  });
}

double dot(const Tensor& a, const Tensor& b) {
  check_alike(a, b, "dot");
  return dispatch_floating(a.dtype(), "dot", [&](auto t) {
    using T = decltype(t);
    const T *x = a.data<T>(), *y = b.data<T>();
    return parallel_sum<double>(a.count(),
                                [=](i64 i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
  });
}

}  // namespace orrery
