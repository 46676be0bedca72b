// Chapter 6. Rotary positions: pairs of numbers turned by an angle (Su et al. 2021, "RoFormer", section 3.4.2).
//
//   (a, b) = (x_i, x_{i + d/2});   y_i = a cos - b sin,   y_{i + d/2} = a sin + b cos
//   da = dy_i cos + dy_{i + d/2} sin,   db = dy_{i + d/2} cos - dy_i sin:   dy, turned back
// A rotation's matrix is orthogonal, so its transpose, which backward multiplies by, is the rotation back. The paper
// pairs columns 2i and 2i + 1; columns half a row apart, as here, are read side by side.
// Shapes: x, y [B, n, h, d]; sine, cosine [n, d / 2].
#include "autograd/ops/rotary.h"

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"

namespace orrery {
using namespace kernels;
namespace {

// `direction` is 1, or -1 to turn back.
template <class T> void turn_row(i64 half, const T* x, const T* sine, const T* cosine, T direction, T* y) {
#pragma omp simd
  for (i64 i = 0; i < half; ++i) {
    const T a = x[i], b = x[half + i], s = direction * sine[i];
    y[i] = a * cosine[i] - b * s;
    y[half + i] = a * s + b * cosine[i];
  }
}

struct RotaryTurn {
  static constexpr std::string_view name = "rotary";
  Saved sine, cosine;

  Tensor turned(const Tensor& x, int direction) const {
    const auto [B, n, h, d] = dims<4>(x, name);
    Tensor y = Tensor::empty(x.shape(), x.dtype());
    dispatch_floating(x.dtype(), name, [&, n = n, h = h, d = d](auto t) {
      using T = decltype(t);
      const T *from = x.data<T>(), *s = sine.get().data<T>(), *c = cosine.get().data<T>();
      T* to = y.write<T>();
      for_rows(x.shape().without_last().count(), d, [=](i64 row) {
        const i64 angles = row / h % n * (d / 2);
        turn_row(d / 2, from + row * d, s + angles, c + angles, static_cast<T>(direction), to + row * d);
      });
    });
    return y;
  }

  Tensor forward(const Tensor& x) {
    const auto [B, n, h, d] = dims<4>(x, name);
    check(d % 2 == 0, name, "needs an even number of columns, has ", d);
    for (const Tensor& angles : {sine.get(), cosine.get()}) {
      check(angles.shape() == Shape{n, d / 2}, name, "needs sines and cosines of shape ", Shape{n, d / 2}, ", got ",
            angles.shape());
      check(angles.dtype() == x.dtype(), name, "dtypes differ (", x.dtype(), " and ", angles.dtype(), ")");
    }
    return turned(x, 1);
  }

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, turned(dy, -1)); }
};

}  // namespace

Variable rotary(const Variable& x, const Tensor& sine, const Tensor& cosine) {
  return apply(RotaryTurn{sine, cosine}, x);
}

}  // namespace orrery
