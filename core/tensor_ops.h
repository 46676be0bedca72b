// Chapter 1. What tensors can do without derivatives: making, arithmetic, joining, cutting and turning them.
//
// The differentiable functions of autograd/ops.h are built of these. Shapes follow NumPy: operands broadcast, negative
// axes and slice ends count from the end.
// Read next: apps/examples/ch1_tensors.cpp
#pragma once

#include <limits>
#include <span>

#include "core/kernels/reduce.h"
#include "core/products/blas.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

// Making tensors.

Tensor zeros(const Shape& shape, Dtype dtype = f32);
/// All `value`. Token ids need their dtype: full({B, 1}, 2, Dtype::i32).
Tensor full(const Shape& shape, double value, Dtype dtype = f32);
/// i32 [n]: 0, 1, ..., n - 1.
Tensor arange(i64 n);
/// Draws from N(0, 1). Drawn in double, then rounded: f32 and f64 tensors of equal state hold the same numbers.
Tensor randn(const Shape& shape, Rng& rng, Dtype dtype = f32);
/// Draws from the uniform distribution on [low, high).
Tensor rand_uniform(const Shape& shape, double low, double high, Rng& rng, Dtype dtype = f32);
/// i32, uniform in {low, ..., high - 1}.
Tensor randint(i64 low, i64 high, const Shape& shape, Rng& rng);

// Arithmetic, with broadcasting; both operands of the same floating dtype.

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor scale(const Tensor& x, double factor);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator*(const Tensor& x, double factor) { return scale(x, factor); }
inline Tensor operator-(const Tensor& x) { return scale(x, -1.0); }

/// y += x, in place; equal shapes.
void add_in_place(Tensor& y, const Tensor& x);
/// y = y + weight (x - y), in place: a linear interpolation; floating, equal shapes and dtypes.
void lerp_in_place(Tensor& y, const Tensor& x, double weight);
/// y *= factor, in place.
void scale_in_place(Tensor& y, double factor);
/// y = value everywhere, in place.
void fill(Tensor& y, double value);
/// Copies the elements of `from` into `to`; equal shapes and dtypes.
void copy_into(Tensor& to, const Tensor& from);
/// Sum of a_i b_i over all elements, in double.
double dot(const Tensor& a, const Tensor& b);

// Products.

/// The shape of op(a) op(b): a is [..., m, k]; b is [k, n], shared by all of a, or [..., k, n] with a's leading axes.
Shape matmul_shape(const Shape& a, const Shape& b, Trans trans);
Tensor matmul(const Tensor& a, const Tensor& b, Trans trans = Trans::none);
/// c = op(a) op(b), or c += with `accumulate`.
void matmul_into(Tensor& c, const Tensor& a, const Tensor& b, Trans trans, bool accumulate);

// Moving elements.

/// Joined along `axis`; all other sizes equal.
Tensor concat(std::span<const Tensor> parts, i64 axis);
inline Tensor concat(std::initializer_list<Tensor> parts, i64 axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
/// Elements [begin, end) along `axis`; negative ends count from the end, larger ones are cut. A view
/// along axis 0, else a copy.
Tensor slice(const Tensor& x, i64 axis, i64 begin, i64 end = std::numeric_limits<i64>::max());
/// Writes `part` into x at [begin, begin + its size) along `axis`, or adds it.
void slice_into(Tensor& x, const Tensor& part, i64 axis, i64 begin, bool accumulate);
/// The order along `axis` reversed.
Tensor flip(const Tensor& x, i64 axis);
/// Axis i of the result is axis order[i] of x. Copies.
Tensor permute(const Tensor& x, std::span<const i64> order);
inline Tensor permute(const Tensor& x, std::initializer_list<i64> order) {
  return permute(x, std::span(order.begin(), order.size()));
}
/// x repeated so that it has `shape`.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// begin and end of a slice along an axis of `size`, as NumPy reads them.
struct SliceRange {
  i64 begin, end;
};
SliceRange slice_range(i64 size, i64 begin, i64 end);

}  // namespace orrery
