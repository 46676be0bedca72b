// Chapter 2. Sums, differences, products and quotients, also as operators.
//
// Operands are broadcast as in NumPy (core/shape.h). Errors: shapes that do not broadcast; different dtypes.
#pragma once

#include "autograd/variable.h"

namespace orrery {

Variable add(const Variable& a, const Variable& b);
Variable sub(const Variable& a, const Variable& b);
Variable mul(const Variable& a, const Variable& b);
Variable div(const Variable& a, const Variable& b);
/// -x.
Variable neg(const Variable& x);
/// x / c for a number c, which may be smaller or larger than those of x's dtype.
Variable div(const Variable& x, double c);
/// x times a number.
Variable scale(const Variable& x, double factor);
/// x + c for a number c.
Variable shift(const Variable& x, double c);

inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
inline Variable operator-(const Variable& x) { return neg(x); }
inline Variable operator*(const Variable& x, double factor) { return scale(x, factor); }
inline Variable operator*(double factor, const Variable& x) { return scale(x, factor); }
inline Variable operator/(const Variable& x, double c) { return div(x, c); }
inline Variable operator+(const Variable& x, double c) { return shift(x, c); }
inline Variable operator+(double c, const Variable& x) { return shift(x, c); }
inline Variable operator-(const Variable& x, double c) { return shift(x, -c); }
inline Variable operator-(double c, const Variable& x) { return shift(neg(x), c); }
Variable operator/(double c, const Variable& x);

// A Tensor beside a Variable is a constant.
inline Variable operator+(const Variable& a, const Tensor& b) { return add(a, constant(b)); }
inline Variable operator-(const Variable& a, const Tensor& b) { return sub(a, constant(b)); }
inline Variable operator*(const Variable& a, const Tensor& b) { return mul(a, constant(b)); }
inline Variable operator/(const Variable& a, const Tensor& b) { return div(a, constant(b)); }
inline Variable operator+(const Tensor& a, const Variable& b) { return add(constant(a), b); }
inline Variable operator-(const Tensor& a, const Variable& b) { return sub(constant(a), b); }
inline Variable operator*(const Tensor& a, const Variable& b) { return mul(constant(a), b); }
inline Variable operator/(const Tensor& a, const Variable& b) { return div(constant(a), b); }

}  // namespace orrery
