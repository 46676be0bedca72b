// Chapter 4. Layer normalisation: each row is brought to mean 0 and standard deviation 1, then scaled and shifted.
//
//   mu = 1/n sum_i x_i        var = 1/n sum_i (x_i - mu)^2        x^_i = (x_i - mu) r        y_i = x^_i w_i + b_i
// r has one of three forms. With g_i = dy_i w_i, the same formula gives the gradient for all of them:
//   1 / sqrt(var + eps)                     k = 1 / n                   (Ba, Kiros, Hinton 2016; PyTorch)
//   1 / (s + eps), s = sqrt(var)            k = 1 / (n s r)
//   1 / (s + eps), s^2 over n - 1           k = 1 / ((n - 1) s r)       (the Annotated Transformer)
//   dx_i = r (g_i - 1/n sum_j g_j - x^_i k sum_j g_j x^_j)
//   dw_i = sum over rows dy_i x^_i        db_i = sum over rows dy_i
// The term with k comes from dr/dx_i. The variance takes two passes, since the one-pass formula E[x^2] - mu^2 loses the
// digits of large numbers (apps/measure/bench/README.md). The loops over one row are in autograd/ops/norm_rows.h; these
// are their lines, in which g(i) is g_i, s.normalized(x[i]) is x^_i, inner is k sum_j g_j x^_j, and s.scale is 1 unless
// squares would overflow or vanish:
//   y[i] = s.normalized(x[i]) * weight[i];                                   forward
//   y[i] += bias[i];
//   dx[i] = factor * (g(i) - mean - s.normalized(x[i]) * inner) * s.scale;   backward; factor is r, mean that of g
//   w += dy[row * n + i] * s[row].normalized(x[row * n + i]);                for each row; w and b are then
//   b += dy[row * n + i];                                                    dweight[i] and dbias[i]
// Read next: apps/book/ch4/four_derivatives.cpp
#include "autograd/ops/layer_norm.h"

#include "autograd/apply.h"
#include "autograd/ops/norm_rows.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  double eps;
  LayerNormForm form;
  Saved x, weight, statistics;  // statistics: a RowStatistics for each row, [rows, 4]

  Tensor forward(const Tensor& in, const Tensor& w, const Tensor& b) {
    check_norm(name, in, w, b, eps, form);
    const i64 n = in.size(-1), count = in.shape().without_last().count();
    Tensor y = Tensor::empty(in.shape(), in.dtype()), kept = Tensor::empty({count, 4}, in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *from = in.data<T>(), *gain = data_or_null<T>(w), *shift = data_or_null<T>(b);
      T *out = y.write<T>(), *table = kept.write<T>();
      for_row_groups(count, n, [=, eps = eps, form = form](i64 begin, i64 end) {
        store_statistics(from, begin, end, n, eps, form, table);
        normalize_rows(from, begin, end, n, table, gain, shift, out);
      });
    });
    x = in;
    weight = w;
    statistics = kept;
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const i64 n = dy.size(-1);
    Tensor d_in = dx.reuse(dy), sums;
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      sums = norm_backward<decltype(t)>(x, statistics, weight, dy, d_in, [](i64, i64) {});
    });
    dx.add(0, std::move(d_in));
    dx.add(1, sums.reshape({2, n}).rows(0, 1).reshape({n}));
    dx.add(2, sums.reshape({2, n}).rows(1, 2).reshape({n}));
  }
};

}  // namespace

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps, LayerNormForm form) {
  return apply(LayerNorm{eps, form, {}, {}, {}}, x, weight, bias);
}

}  // namespace orrery
