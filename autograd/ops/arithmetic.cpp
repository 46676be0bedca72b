// Chapter 2. Sums, differences, products and quotients.
//
// Operands are broadcast. The engine (Grads::add) sums a gradient of the broadcast shape down to the shape of its
// operand, so the formulas below are those for equal shapes:
//   y = a + b     da = dy          db = dy
//   y = a - b     da = dy          db = -dy
//   y = a b       da = dy b        db = dy a
//   y = a / b     da = dy / b      db = -dy a / b^2 = -dy y / b
//   y = x + c     dx = dy          for a number c; y = x c and y = x / c likewise, dx = dy c and dx = dy / c
//   y = c / x     dx = -dy y / x
#include "autograd/ops/arithmetic.h"

#include "autograd/apply.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

struct Add {
  static constexpr std::string_view name = "add";
  Tensor forward(const Tensor& a, const Tensor& b) { return a + b; }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    dx.add(1, dy);
  }
};

struct Sub {
  static constexpr std::string_view name = "sub";
  Tensor forward(const Tensor& a, const Tensor& b) { return a - b; }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    if (dx.wanted(1)) dx.add(1, -dy);
  }
};

struct Mul {
  static constexpr std::string_view name = "mul";
  Saved a, b;
  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return left * right;
  }
  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(0)) dx.add(0, dy * b.get());
    if (dx.wanted(1)) dx.add(1, dy * a.get());
  }
};

struct Div {
  static constexpr std::string_view name = "div";
  Saved b, y;
  Tensor forward(const Tensor& dividend, const Tensor& divisor) {
    b = divisor;
    Tensor quotient = dividend / divisor;
    y = quotient;
    return quotient;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor da = dy / b.get();
    dx.add(0, da);
    if (dx.wanted(1)) dx.add(1, -(da * y.get()));
  }
};

struct DivideNumber {
  static constexpr std::string_view name = "div";
  double c;
  Saved x, y;
  Tensor forward(const Tensor& divisor) {
    x = divisor;
    Tensor quotient = div(c, divisor);
    y = quotient;
    return quotient;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, -(dy / x.get() * y.get())); }
};

struct Scale {
  static constexpr std::string_view name = "scale";
  double c;
  bool divides = false;
  Tensor of(const Tensor& x) const { return divides ? x / c : x * c; }
  Tensor forward(const Tensor& x) { return of(x); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, of(dy)); }
};

struct ShiftBy {
  static constexpr std::string_view name = "shift";
  double c;
  Tensor forward(const Tensor& x) { return x + c; }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy); }
};

struct Neg {
  static constexpr std::string_view name = "neg";
  Tensor forward(const Tensor& x) { return -x; }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, -dy); }
};

}  // namespace

Variable add(const Variable& a, const Variable& b) { return apply(Add{}, a, b); }
Variable sub(const Variable& a, const Variable& b) { return apply(Sub{}, a, b); }
Variable mul(const Variable& a, const Variable& b) { return apply(Mul{}, a, b); }
Variable div(const Variable& a, const Variable& b) { return apply(Div{}, a, b); }
Variable neg(const Variable& x) { return apply(Neg{}, x); }
Variable scale(const Variable& x, double factor) { return apply(Scale{factor}, x); }
Variable div(const Variable& x, double c) { return apply(Scale{.c = c, .divides = true}, x); }
Variable shift(const Variable& x, double c) { return apply(ShiftBy{c}, x); }
Variable operator/(double c, const Variable& x) { return apply(DivideNumber{c, {}, {}}, x); }

}  // namespace orrery
