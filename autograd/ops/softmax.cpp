// Chapter 4. Softmax: numbers become probabilities, and its logarithm.
//
//   y_i = e^{x_i} / sum_j e^{x_j}        dy_i/dx_k = y_i ([i = k] - y_k),  so  dx_k = y_k (dy_k - sum_i dy_i y_i)
//   y_i = x_i - log sum_j e^{x_j}        dy_i/dx_k = [i = k] - e^{y_k},    so  dx_k = dy_k - e^{y_k} sum_i dy_i
// Rows are the last axis. The outputs of softmax add up to 1, so that a gradient which is equal for all of them
// vanishes.
// Read next: autograd/ops/layer_norm.cpp
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/elementwise.h"
#include "core/rows.h"

namespace orrery {
namespace {

i64 columns_of(const Tensor& x, std::string_view operation) {
  check(x.rank() >= 1, operation, "needs at least one axis, has shape ", x.shape());
  return x.size(-1);
}

struct Softmax {
  static constexpr std::string_view name = "softmax";
  Saved y;

  Tensor forward(const Tensor& x) {
    const i64 n = columns_of(x, name);
    Tensor result = Tensor::empty(x.shape(), x.dtype());
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* in = x.data<T>();
      T* out = result.write<T>();
      for_rows(x.shape().without_last().count(), n, [=](i64 row) { softmax_row(in + row * n, out + row * n, n); });
    });
    y = result;
    return result;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor& probabilities = y;
    const i64 n = probabilities.size(-1);
    Tensor result = Tensor::empty(dy.shape(), dy.dtype());
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *p = probabilities.data<T>(), *d = dy.data<T>();
      T* out = result.write<T>();
      for_rows(dy.shape().without_last().count(), n,
               [=](i64 row) { softmax_derivative_row(p + row * n, d + row * n, out + row * n, n); });
    });
    dx.add(0, result);
  }
};

struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax";
  Saved y;

  Tensor forward(const Tensor& x) {
    const i64 n = columns_of(x, name);
    Tensor result = Tensor::empty(x.shape(), x.dtype());
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* in = x.data<T>();
      T* out = result.write<T>();
      for_rows(x.shape().without_last().count(), n, [=](i64 row) {
        const T* from = in + row * n;
        const T shift = row_shift(from, n);
        const T log_total = static_cast<T>(std::log(lane_sum<T>(n, [=](i64 i) { return math::exp(from[i] - shift); })));
        for (i64 i = 0; i < n; ++i) out[row * n + i] = from[i] - shift - log_total;
      });
    });
    y = result;
    return result;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor& logs = y;
    const i64 n = logs.size(-1);
    Tensor result = Tensor::empty(dy.shape(), dy.dtype());
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *log_p = logs.data<T>(), *d = dy.data<T>();
      T* out = result.write<T>();
      for_rows(dy.shape().without_last().count(), n, [=](i64 row) {
        const i64 at = row * n;
        const T total = static_cast<T>(lane_sum<T>(n, [=](i64 i) { return d[at + i]; }));
#pragma omp simd
        for (i64 i = at; i < at + n; ++i) out[i] = d[i] - math::exp(log_p[i]) * total;
      });
    });
    dx.add(0, result);
  }
};

}  // namespace

Variable softmax(const Variable& x) { return apply(Softmax{}, x); }
Variable log_softmax(const Variable& x) { return apply(LogSoftmax{}, x); }

}  // namespace orrery
