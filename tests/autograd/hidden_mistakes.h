// Chapter 3. Wrong backwards that one pass by itself does not show, for the parts of a proof to catch.
#pragma once

#include <cmath>
#include <functional>
#include <memory>

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"

namespace orrery::hidden {

// x^2, whose backward the test writes: from x, dy and g = 2 x dy to dx.
struct Square {
  static constexpr std::string_view name = "square";
  using Rule = std::function<void(const Tensor& x, const Tensor& dy, const Tensor& g, Grads& dx)>;
  Rule rule;
  Saved x{};
  Tensor forward(const Tensor& in) {
    x = in;
    return in * in;
  }
  void backward(const Tensor& dy, Grads& dx) { rule(x, dy, dy * x.get() * 2.0, dx); }
};

// a b, the same.
struct Product {
  static constexpr std::string_view name = "product";
  using Rule = std::function<void(const Tensor& da, const Tensor& db, Grads& dx)>;
  Rule rule;
  Saved a{}, b{};
  Tensor forward(const Tensor& x, const Tensor& y) {
    a = x;
    b = y;
    return x * y;
  }
  void backward(const Tensor& dy, Grads& dx) { rule(dy * b.get(), dy * a.get(), dx); }
};

// x^2, whose backward takes the x of the first forward of a dtype, or of the latest.
struct Remembering {
  static constexpr std::string_view name = "remembering";
  struct Memory {
    Tensor x[2];
  };
  std::shared_ptr<Memory> memory;
  bool first;
  Tensor forward(const Tensor& in) {
    Tensor& x = memory->x[in.dtype() == f32];
    if (!first || !x.defined()) x = in.clone();
    return in * in;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * memory->x[dy.dtype() == f32] * 2.0); }
};

// x^2 and e^x, whose x or y is kept as a Tensor where a Saved belongs.
struct BareInput {
  static constexpr std::string_view name = "bare_input";
  Tensor x;
  Tensor forward(const Tensor& in) {
    x = in;
    return in * in;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * x * 2.0); }
};
struct BareOutput {
  static constexpr std::string_view name = "bare_output";
  Tensor y;
  Tensor forward(const Tensor& in) {
    return y = kernels::map(in, name, [](auto v) { return std::exp(v); });
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * y); }
};

/// g, doubled where `wrong` says so of x's element.
inline Tensor doubled_where(const Tensor& x, const Tensor& g, const std::function<bool(double)>& wrong) {
  Tensor result = g.clone();
  for (i64 i = 0; i < g.count(); ++i) {
    if (!wrong(x.at(i))) continue;
    Tensor element = result.reshape({-1}).rows(i, i + 1);
    scale_in_place(element, 2);
  }
  return result;
}

/// x, whose backward multiplies the rows of dy from row `from` on by 1.001.
struct LateRows {
  static constexpr std::string_view name = "late_rows";
  i64 from;
  Tensor forward(const Tensor& x) { return x * 1.0; }
  void backward(const Tensor& dy, Grads& dx) {
    Tensor g = dy.clone();
    if (g.rank() > 0 && g.size(0) > from) {
      Tensor late = g.rows(from, g.size(0));
      scale_in_place(late, 1.001);
    }
    dx.add(0, g);
  }
};

}  // namespace orrery::hidden
