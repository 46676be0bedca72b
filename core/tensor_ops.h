// Chapter 1. Operations on tensors without derivatives: creation, arithmetic, sums, products, and moving elements.
//
// The differentiable functions of autograd/ops.h are built from these. Shapes follow NumPy: operands are broadcast, and
// negative axes and slice bounds count from the end. Comparisons, and what chooses by ids: core/choosing.h.
// Read next: apps/book/ch1/tensors.cpp
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "core/choosing.h"
#include "core/products/gemm.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

// Creating tensors.

Tensor zeros(const Shape& shape, Dtype dtype = f32);
/// `value` in every element: f32 or the given dtype, which it must fit; i32 if it is a whole number (a token id). A
/// wider integer needs a dtype.
Tensor full(const Shape& shape, double value, Dtype dtype = f32);
inline Tensor full(const Shape& shape, i32 value) { return full(shape, value, Dtype::i32); }
/// i32 [n]: 0, 1, ..., n - 1. Error: n is negative, or n - 1 does not fit into i32.
Tensor arange(i64 n);
/// Draws from N(0, 1), in double and then rounded to `dtype`. So a generator in the same state gives the same numbers
/// in f32 as in f64, up to rounding.
Tensor randn(const Shape& shape, Rng& rng, Dtype dtype = f32);
/// Draws from the uniform distribution on [low, high), in double and then rounded to `dtype`: a number may be `high`.
Tensor rand_uniform(const Shape& shape, double low, double high, Rng& rng, Dtype dtype = f32);
/// i32, uniform in {low, ..., high - 1}. Errors: low >= high; numbers that do not fit into i32.
Tensor randint(i64 low, i64 high, const Shape& shape, Rng& rng);

// Arithmetic with broadcasting. Both operands must have the same floating dtype.

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
/// c / x is c divided by every element. A number c may be smaller or larger than those of the tensor's dtype.
Tensor div(const Tensor& x, double c);
Tensor div(double c, const Tensor& x);
Tensor scale(const Tensor& x, double factor);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator*(const Tensor& x, double factor) { return scale(x, factor); }
inline Tensor operator*(double factor, const Tensor& x) { return scale(x, factor); }
inline Tensor operator/(const Tensor& x, double c) { return div(x, c); }
inline Tensor operator+(const Tensor& x, double c) { return add(x, full({}, c, x.dtype())); }
inline Tensor operator+(double c, const Tensor& x) { return x + c; }
inline Tensor operator-(const Tensor& x, double c) { return x + -c; }
inline Tensor operator-(double c, const Tensor& x) { return sub(full({}, c, x.dtype()), x); }
inline Tensor operator/(double c, const Tensor& x) { return div(c, x); }

inline Tensor operator-(const Tensor& x) { return scale(x, -1.0); }

/// y += x, in place; equal shapes.
void add_in_place(Tensor& y, const Tensor& x);
/// y = y + weight (x - y), in place: linear interpolation. Shapes and floating dtypes must be equal.
void lerp_in_place(Tensor& y, const Tensor& x, double weight);
/// y *= factor, in place.
void scale_in_place(Tensor& y, double factor);
/// Sets every element of y to `value`.
void fill(Tensor& y, double value);
/// Copies the elements of `from` into `to`; equal shapes and dtypes.
void copy_into(Tensor& to, const Tensor& from);
/// Sum of a_i b_i over all elements, in double.
double dot(const Tensor& a, const Tensor& b);

// Sums and maxima over axes, of f32 and f64. Errors: another dtype; an axis that is out of range or named twice.

/// Axes to reduce over; empty means all of them. Negative axes count from the end.
using Axes = std::vector<i64>;

/// The shape after reducing `axes` of `shape`: those axes are dropped, or kept with size 1.
Shape reduced_shape(const Shape& shape, const Axes& axes, bool keep_axes, std::string_view operation);

/// Sums over `axes`.
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
/// Means over `axes`. The mean of no elements is NaN, as in NumPy.
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
/// Largest and smallest values over `axes`; NaN if any element is NaN. Those of no elements are an error.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
/// y_i = x_0 + ... + x_i along `axis`, added in double; of f32 and f64.
Tensor cumulative_sum(const Tensor& x, i64 axis);
/// Index of the largest value along the last axis: x [..., n] to i32 [...]. The first one if several are equal. Since
/// no comparison with NaN is true, a NaN at index 0 is chosen, and any other NaN is skipped. Error: there is no last
/// axis, or n is 0.
Tensor argmax(const Tensor& x);

/// `x` summed down to `shape`: the reverse of broadcasting `shape` to the shape of `x`. `x` itself if the shapes are
/// equal. Error: `shape` does not broadcast to the shape of `x`.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// The sum of all squares, in double: for norms.
double sum_of_squares(const Tensor& x);
/// The same for elements [begin, end), on the calling thread.
double sum_of_squares(const Tensor& x, i64 begin, i64 end);
/// Whether elements [begin, end) are all finite, on the calling thread.
bool all_finite(const Tensor& x, i64 begin, i64 end);

// Products.

/// The shape of op(a) op(b), where op transposes as `trans` says. op(a) is [..., m, k]; op(b) is either [k, n], shared
/// by all leading axes of a, or [..., k, n] with the same leading axes as a. A transposed a, [..., k, m], needs a
/// separate b for each matrix, since its matrices cannot be folded into one.
Shape matmul_shape(const Shape& a, const Shape& b, Trans trans);
/// op(a) op(b), in a new tensor of that shape.
Tensor matmul(const Tensor& a, const Tensor& b, Trans trans = Trans::none);
/// c = op(a) op(b), or c += op(a) op(b) with `accumulate`; c must not share memory with a or b.
void matmul_into(Tensor& c, const Tensor& a, const Tensor& b, Trans trans, bool accumulate);

// Moving elements.

/// All leading axes folded into the rows: [..., n] as [rows, n].
inline Tensor as_rows(const Tensor& x) { return x.reshape({x.shape().without_last().count(), x.size(-1)}); }
/// The parts joined along `axis`; all other sizes must be equal.
Tensor concat(std::span<const Tensor> parts, i64 axis);
inline Tensor concat(std::initializer_list<Tensor> parts, i64 axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
/// Elements [begin, end) along `axis`. Negative bounds count from the end; bounds beyond the end are cut to it. A view
/// if `axis` is 0, otherwise a copy.
Tensor slice(const Tensor& x, i64 axis, i64 begin, i64 end = std::numeric_limits<i64>::max());
/// Writes `part` into x along `axis`, starting at index `begin`, or adds it with `accumulate`. Errors: a part that does
/// not fit there, or that shares elements with x.
void slice_into(Tensor& x, const Tensor& part, i64 axis, i64 begin, bool accumulate);
/// x with its elements in reverse order along `axis`.
Tensor flip(const Tensor& x, i64 axis);
/// Reorders the axes: axis i of the result is axis order[i] of x. Always a copy.
Tensor permute(const Tensor& x, std::span<const i64> order);
inline Tensor permute(const Tensor& x, std::initializer_list<i64> order) {
  return permute(x, std::span(order.begin(), order.size()));
}
/// x broadcast to `shape`, as a copy.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// The bounds of a slice along an axis with `size` elements, as NumPy interprets them.
struct SliceRange {
  i64 begin, end;
};
SliceRange slice_range(i64 size, i64 begin, i64 end);

}  // namespace orrery
