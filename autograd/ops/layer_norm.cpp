// Chapter 4. Layer normalisation: each row brought to mean 0 and deviation 1, then stretched and shifted.
//
//   mu = 1/n sum_i x_i        var = 1/n sum_i (x_i - mu)^2        x^_i = (x_i - mu) r        y_i = x^_i w_i + b_i
// Three forms of r, and with g_i = dy_i w_i the derivative of all three:
//   1 / sqrt(var + eps)                     k = 1 / n                   (Ba, Kiros, Hinton 2016; PyTorch)
//   1 / (s + eps), s = sqrt(var)            k = 1 / (n s r)
//   1 / (s + eps), s^2 over n - 1           k = 1 / ((n - 1) s r)       (the Annotated Transformer)
//   dx_i = r (g_i - 1/n sum_j g_j - x^_i k sum_j g_j x^_j)
//   dw_i = sum over rows dy_i x^_i        db_i = sum over rows dy_i
// The term in k comes from dr/dx_i. The variance takes two passes: var = E x^2 - mu^2 in one pass is 24 % wrong at mean
// 1,000.
// Read next: autograd/ops/cross_entropy.cpp
#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// What backward needs of each row.
template <class T>
struct RowStatistics {
  T mean, r, k;
};

template <class T>
RowStatistics<T> statistics(const T* x, i64 n, double eps, LayerNormForm form) {
  const double size = static_cast<double>(n);
  const T mean = static_cast<T>(lane_sum<T>(n, [=](i64 i) { return x[i]; }) / size);
  // The mean as rounded to T is off by a little; what the differences still add up to corrects for it.
  const double rest = lane_sum<T>(n, [=](i64 i) { return x[i] - mean; }) / size;
  const double around_mean = lane_sum<T>(n, [=](i64 i) { return (x[i] - mean) * (x[i] - mean); });
  const double squares = std::max(around_mean - size * rest * rest, 0.0);  // in this order NaN stays NaN
  if (form == LayerNormForm::root_of_variance_plus_eps) {
    return {mean, static_cast<T>(1.0 / std::sqrt(squares / size + eps)), static_cast<T>(1.0 / size)};
  }
  const double divisor = form == LayerNormForm::std_plus_eps ? size : size - 1.0;
  const double s = std::sqrt(squares / divisor), r = 1.0 / (s + eps);
  return {mean, static_cast<T>(r), s > 0 ? static_cast<T>(1.0 / (divisor * s * r)) : T{0}};
}

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  double eps;
  LayerNormForm form;
  Saved x, weight, rows;  // rows: [rows, 3] of RowStatistics

  Tensor forward(const Tensor& in, const Tensor& w, const Tensor& b) {
    check(in.rank() >= 1, name, "needs at least one axis");
    const i64 n = in.size(-1), count = in.shape().without_last().count();
    for (const Tensor* p : {&w, &b}) {
      check(!p->defined() || p->shape() == Shape{n}, name, "weight and bias need shape ", Shape{n}, ", got ",
            p->shape());
    }
    check(form != LayerNormForm::unbiased_std_plus_eps || n > 1, name, "the unbiased form needs rows of at least 2");
    Tensor y = Tensor::empty(in.shape(), in.dtype()), kept = Tensor::empty({count, 3}, in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *from = in.data<T>(), *gain = w.defined() ? w.data<T>() : nullptr,
              *shift = b.defined() ? b.data<T>() : nullptr;
      T *out = y.write<T>(), *stat = kept.write<T>();
      for_rows(count, n, [=, eps = eps, form = form](i64 row) {
        const T* a = from + row * n;
        T* o = out + row * n;
        const auto [mean, r, k] = statistics(a, n, eps, form);
        stat[row * 3] = mean, stat[row * 3 + 1] = r, stat[row * 3 + 2] = k;
        for (i64 i = 0; i < n; ++i) o[i] = (a[i] - mean) * r;
        if (gain)
          for (i64 i = 0; i < n; ++i) o[i] *= gain[i];
        if (shift)
          for (i64 i = 0; i < n; ++i) o[i] += shift[i];
      });
    });
    x = in, weight = w, rows = kept;
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const i64 n = dy.size(-1), count = dy.shape().without_last().count();
    const bool wants_in = dx.wanted(0), wants_weight = dx.wanted(1);
    Tensor d_in = wants_in ? Tensor::empty(dy.shape(), dy.dtype()) : Tensor();
    Tensor d_weight = wants_weight ? Tensor::empty({count, n}, dy.dtype()) : Tensor();  // before the sum over rows
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *in = x.get().data<T>(), *d = dy.data<T>(), *stat = rows.get().data<T>();
      const T* gain = weight.defined() ? weight.get().data<T>() : nullptr;
      T *out = wants_in ? d_in.write<T>() : nullptr, *dw = wants_weight ? d_weight.write<T>() : nullptr;
      for_rows(count, n, [=](i64 row) {
        const T *a = in + row * n, *b = d + row * n;
        const T mean = stat[row * 3], r = stat[row * 3 + 1], k = stat[row * 3 + 2];
        if (dw)
          for (i64 i = 0; i < n; ++i) dw[row * n + i] = b[i] * ((a[i] - mean) * r);
        if (!out) return;
        T* o = out + row * n;
        const auto g = [=](i64 i) { return gain ? b[i] * gain[i] : b[i]; };
        const T g_mean = static_cast<T>(lane_sum<T>(n, g) / static_cast<double>(n));
        const T inner = k * static_cast<T>(lane_sum<T>(n, [=](i64 i) { return g(i) * ((a[i] - mean) * r); }));
        for (i64 i = 0; i < n; ++i) o[i] = r * (g(i) - g_mean - (a[i] - mean) * r * inner);
      });
    });
    if (wants_in) dx.add(0, d_in);
    if (wants_weight) dx.add(1, d_weight);
    dx.add(2, dy);
  }
};

}  // namespace

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps, LayerNormForm form) {
  return apply(LayerNorm{eps, form, {}, {}, {}}, x, weight, bias);
}

}  // namespace orrery
