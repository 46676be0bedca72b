// Chapter 4. Cross entropy: how surprised the model is by what came next.
//
// With p = softmax(x) over K classes and the target distribution q (1 for the target class, 0 for all others; or
// smoothed; paper, section 5.4: "we employed label smoothing of value eps_ls = 0.1"):
//   L = -sum_k q_k log p_k = lse(x) - sum_k q_k x_k        lse(x) = m + log sum_k e^{x_k - m},  m = max x
//   dL/dx_k = p_k - q_k
// The loss is the sum over all targets that count (those that are not ignored), divided by their number, by nothing, or
// by a number that the caller gives. This single pass is faster than log_softmax, mul and sum
// (apps/measure/bench/README.md).
// The other losses are compositions:
//   mse               (y - t)^2
//   bce_with_logits   -ln s(x) = softplus(-x) and -ln(1 - s(x)) = softplus(x), which are exact however large |x| is:
//                     t softplus(-x) + (1 - t) softplus(x)
//   kl_divergence     sum_k q_k ln q_k - q_k log_p_k; the first part is a constant
// Read next: autograd/ops/layer_norm.cpp
#include "autograd/ops/cross_entropy.h"

#include "autograd/apply.h"
#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
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
            K, [=](i64 k) { fetch_to_read(a + K + k, sum_lanes); }, [=](i64 k) { return math::exp(a[k] - m); },
            [=](i64 k) { return a[k] - m; });
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
                 in_segments(K, a, o, [=](i64 first, i64 last) {
#pragma omp simd
                   for (i64 k = first; k < last; ++k) o[k] = (math::exp(a[k] - m - log_total) - off) * factor;
                 });
                 o[target[row]] += (off - on) * factor;
               });
    });
    dx.add(0, d);
  }
};

// Checks the arguments of a loss over `counted` targets, and returns what its sum is divided by.
double divisor_of(std::string_view name, const Variable& x, const Tensor& targets, const LossOptions& options,
                  i64 counted) {
  return tape::explained(name, std::array{&x}, [&] {
    check(targets.defined() && targets.shape() == x.shape() && targets.dtype() == x.dtype(), name, "needs targets ",
          x.dtype(), ' ', x.shape(), ", got ", targets.dtype(), ' ', targets.shape());
    check(options.reduction == Reduction::divisor || options.divisor == 1, name,
          "a divisor counts only with Reduction::divisor");
    check(options.divisor > 0, name, "the divisor must be positive, got ", options.divisor);
    return options.reduction == Reduction::mean ? static_cast<double>(std::max<i64>(1, counted)) : options.divisor;
  });
}

}  // namespace

Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  return apply(CrossEntropy{{targets, options}, {}, {}}, logits);
}

Variable mse(const Variable& y, const Tensor& targets, const LossOptions& options) {
  const double divisor = divisor_of("mse", y, targets, options, y.shape().count());
  const Variable difference = y - targets;
  return sum(difference * difference) / divisor;
}

Variable bce_with_logits(const Variable& logits, const Tensor& targets, const LossOptions& options) {
  const double divisor = divisor_of("bce_with_logits", logits, targets, options, logits.shape().count());
  return sum(softplus(-logits) * targets + softplus(logits) * (1.0 - targets)) / divisor;
}

Variable kl_divergence(const Variable& log_p, const Tensor& q, const LossOptions& options) {
  const bool has_rows = log_p.shape().rank() > 0;
  const double divisor =
      divisor_of("kl_divergence", log_p, q, options, has_rows ? log_p.shape().without_last().count() : i64{1});
  const Tensor one = full({}, 1.0, q.dtype());
  const Tensor q_log_q = q * log(constant(where(q > 0, q, one))).value();
  return sum(q_log_q - log_p * q) / divisor;
}

}  // namespace orrery
