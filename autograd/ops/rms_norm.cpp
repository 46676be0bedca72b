// Chapter 4. RMS normalisation: each row is divided by its root mean square (Zhang, Sennrich 2019).
//
//   y_i = x_i r,  r = 1 / sqrt(1/n sum_j x_j^2 + eps)
//   dr/dx_k = -r^3 x_k / n,  so  dx_k = r dy_k - r^3 x_k 1/n sum_i dy_i x_i = r (dy_k - y_k 1/n sum_i dy_i y_i)
// Unlike layer normalisation, it does not subtract the mean, so the two agree on rows of mean 0.
#include "autograd/ops/rms_norm.h"

#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops/norm_rows.h"
#include "autograd/ops/softmax_rows.h"

namespace orrery {
using namespace kernels;
namespace {

// The scale of a row (autograd/ops/norm_rows.h), and r of the scaled row.
template <class T> struct RowSize { T scale, r; };

template <class T> RowSize<T> row_size(const T* x, i64 n, double eps) {
  const auto mean_square = [=](T scale) {
    return chunked_sum<T>(n, [=](i64 i) { return x[i] * scale * (x[i] * scale); }) / static_cast<double>(n);
  };
  T scale = 1;
  double mean = mean_square(scale);
  if (!is_mean_square<T>(mean + eps)) {
    scale = row_scale(x, n, std::sqrt(eps));
    mean = mean_square(scale);
  }
  const double by = static_cast<double>(scale);
  return {scale, static_cast<T>(1.0 / std::sqrt(mean + eps * by * by))};
}

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  double eps;
  Saved x;

  Tensor forward(const Tensor& in) {
    check(eps >= 0 && std::isfinite(eps), name, "eps must be a number of 0 or more, got ", eps);
    x = in;
    return map_rows(in, name, [eps = eps]<class T>(const T* from, T* y, i64 n) {
      const RowSize<T> s = row_size(from, n, eps);
#pragma omp simd
      for (i64 i = 0; i < n; ++i) y[i] = from[i] * s.scale * s.r;
    });
  }

  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, map_rows(x, dy, name, [eps = eps]<class T>(const T* from, const T* d, T* out, i64 n) {
             const RowSize<T> s = row_size(from, n, eps);
             const T mean = static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return d[i] * (from[i] * s.scale * s.r); }) /
                                           static_cast<double>(n));
#pragma omp simd
             for (i64 i = 0; i < n; ++i) out[i] = s.r * (d[i] - from[i] * s.scale * s.r * mean) * s.scale;
           }));
  }
};

}  // namespace

Variable rms_norm(const Variable& x, double eps) { return apply(RmsNorm{eps, {}}, x); }

}  // namespace orrery
