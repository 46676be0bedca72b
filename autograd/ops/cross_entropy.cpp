// Chapter 4. Cross entropy: how surprised the model is by what came next.
//
// With p = softmax(x) over K classes and the target distribution q (1 for the target class, 0 for all others; or
// smoothed; paper, section 5.4: "we employed label smoothing of value eps_ls = 0.1"):
//   L = -sum_k q_k log p_k = lse(x) - sum_k q_k x_k        lse(x) = m + log sum_k e^{x_k - m},  m = max x
//   dL/dx_k = p_k - q_k
// The loss is the sum over all targets that count (those that are not ignored), divided by their number, by nothing, or
// by a number that the caller gives. This single pass is faster than log_softmax, mul and sum
// (apps/measure/bench/README.md).
// Read next: autograd/ops/layer_norm.cpp
#include "autograd/ops/cross_entropy.h"

#include "autograd/apply.h"
#include "autograd/ops/softmax_rows.h"
#include "autograd/ops/target_distribution.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  TargetDistribution q;
  Saved logits, statistics;  // statistics: m and log sum_k e^{x_k - m} of each row, [rows, 2]

  Tensor forward(const Tensor& x) {
    check(x.rank() >= 1, name, "logits need an axis of classes, have shape ", x.shape());
    const i64 K = x.size(-1), count = q.prepare(name, x.shape().without_last(), K);
    Tensor losses = Tensor::empty({count}, f64), kept = Tensor::empty({count, 2}, x.dtype());
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* in = x.data<T>();
      T* stat = kept.write<T>();
      double* loss = losses.write<double>();
      const i32* target = q.targets.get().data<i32>();
      for_rows(count, K, [=, on = q.on, off = q.off, ignore = q.options.ignore_index](i64 row) {
        loss[row] = 0;
        if (target[row] == ignore) return;
        const T* a = in + row * K;
        const T m = row_shift(a, K);
        const auto [exps, differences] = chunked_sums<T>(
            K, [=](i64 k) { return math::exp(a[k] - m); }, [=](i64 k) { return a[k] - m; });
        const double log_total = std::log(exps);
        stat[row * 2] = m;
        stat[row * 2 + 1] = static_cast<T>(log_total);
        // sum_k q_k (x_k - m) = (on - off) (x_target - m) + off sum_k (x_k - m)
        const double spread = off == 0 ? 0 : off * differences;
        loss[row] = log_total - (on - off) * static_cast<double>(a[target[row]] - m) - spread;
      });
    });
    logits = x;
    statistics = kept;
    return full({}, sum(losses).item() / q.divisor, x.dtype());
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor& x = logits;
    const i64 count = q.targets.get().count(), K = x.size(-1);
    Tensor d = dx.reuse(x);  // the logits, the largest tensor of all, are overwritten if nobody else reads them
    dispatch_floating(x.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *in = x.data<T>(), *stat = statistics.get().data<T>();
      T* out = d.write<T>();
      const i32* target = q.targets.get().data<i32>();
      const T factor = static_cast<T>(dy.item() / q.divisor);
      for_rows(count, K,
               [=, on = static_cast<T>(q.on), off = static_cast<T>(q.off), ignore = q.options.ignore_index](i64 row) {
                 const T* a = in + row * K;
                 T* o = out + row * K;
                 if (target[row] == ignore) {
                   std::fill_n(o, K, T{0});
                   return;
                 }
                 const T m = stat[row * 2], log_total = stat[row * 2 + 1];
#pragma omp simd
                 for (i64 k = 0; k < K; ++k) o[k] = (math::exp(a[k] - m - log_total) - off) * factor;
                 o[target[row]] += (off - on) * factor;
               });
    });
    dx.add(0, d);
  }
};

}  // namespace

Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  return apply(CrossEntropy{{targets, options}, {}, {}}, logits);
}

}  // namespace orrery
