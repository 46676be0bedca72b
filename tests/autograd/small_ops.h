// Chapter 2. A few operations made with `apply`, so that the tests of the tape need no file of autograd/ops.
#pragma once

#include <vector>

#include "autograd/apply.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

namespace orrery::small {

struct Plus {
  static constexpr std::string_view name = "plus";
  Tensor forward(const Tensor& a, const Tensor& b) { return add(a, b); }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    dx.add(1, dy);
  }
};
inline Variable plus(const Variable& a, const Variable& b) { return apply(Plus{}, a, b); }

struct Times {
  static constexpr std::string_view name = "times";
  Saved a, b;
  Tensor forward(const Tensor& x, const Tensor& y) {
    a = x;
    b = y;
    return mul(x, y);
  }
  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(0)) dx.add(0, mul(dy, b));
    if (dx.wanted(1)) dx.add(1, mul(dy, a));
  }
};
inline Variable times(const Variable& a, const Variable& b) { return apply(Times{}, a, b); }

struct Total {
  static constexpr std::string_view name = "total";
  Shape shape;
  Tensor forward(const Tensor& x) {
    shape = x.shape();
    return orrery::sum(x);
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, broadcast_to(dy, shape)); }
};
inline Variable total(const Variable& x) { return apply(Total{}, x); }

/// y = a b through `into`, so that products accumulate inside BLAS.
struct Product {
  static constexpr std::string_view name = "product";
  Saved a, b;
  Tensor forward(const Tensor& x, const Tensor& y) {
    a = x;
    b = y;
    return matmul(x, y);
  }
  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(0)) dx.into(0).gemm(dy, b, Trans::b);
    if (dx.wanted(1)) dx.into(1).gemm(a, dy, Trans::a);
  }
};
inline Variable product(const Variable& a, const Variable& b) { return apply(Product{}, a, b); }

/// First and second half of a vector.
struct Halves {
  static constexpr std::string_view name = "halves";
  i64 n = 0;
  std::array<Tensor, 2> forward(const Tensor& x) {
    n = x.size(0) / 2;
    return {x.rows(0, n), x.rows(n, 2 * n)};
  }
  void backward(const std::array<Tensor, 2>& dy, Grads& dx) {
    Tensor g = zeros({2 * n}, dx.dtype(0));
    for (i64 i = 0; i < 2; ++i) {
      const Tensor& part = dy[static_cast<size_t>(i)];
      if (part.defined()) slice_into(g, part, 0, i * n, false);
    }
    dx.add(0, g);
  }
};
inline std::array<Variable, 2> halves(const Variable& x) { return apply(Halves{}, x); }

/// The sum of any number of tensors.
struct PlusAll {
  static constexpr std::string_view name = "plus_all";
  size_t count = 0;
  Tensor forward(std::span<const Tensor> parts) {
    count = parts.size();
    Tensor y = zeros(parts[0].shape(), parts[0].dtype());
    for (const Tensor& part : parts) add_in_place(y, part);
    return y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    for (size_t i = 0; i < count; ++i) dx.add(i, dy);
  }
};
inline Variable plus_all(std::span<const Variable> parts) { return apply(PlusAll{}, parts); }

/// A vector of f64 as a parameter.
inline Variable leaf(const std::vector<double>& elements, std::string name = "") {
  return parameter(vector_of(elements), std::move(name));
}

}  // namespace orrery::small
