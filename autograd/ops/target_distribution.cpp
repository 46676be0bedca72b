// Chapter 4. The target distribution: checks, smoothing, and what the loss is divided by.
#include "autograd/ops/target_distribution.h"

namespace orrery::kernels {
namespace {

// What the sum of the losses of `counted` targets is divided by.
double divisor_of(const CrossEntropyOptions& options, i64 counted) {
  switch (options.reduction) {
    case Reduction::sum: return 1;
    case Reduction::mean: return static_cast<double>(counted);
    case Reduction::divisor: break;
  }
  return options.divisor;
}

}  // namespace

i64 TargetDistribution::prepare(std::string_view operation, const Shape& rows, i64 K) {
  check(targets.defined() && targets.get().dtype() == Dtype::i32, operation, "targets must be i32");
  const Tensor& ids = targets.get();
  check(rows == ids.shape(), operation, "logits ", rows.plus(K), " need targets of shape ", rows, ", got ",
        ids.shape());
  const double eps = options.label_smoothing;
  check(eps >= 0 && eps <= 1, operation, "label smoothing must lie in [0, 1], got ", eps);
  const bool over_all = options.smoothing == Smoothing::all_classes;
  check(options.reduction == Reduction::divisor || options.divisor == 1, operation,
        "a divisor counts only with Reduction::divisor");
  check(eps == 0 || over_all || K > 1, operation, "smoothing over wrong classes needs at least 2 classes");
  const i64 smoothed = over_all ? K : K - 1;  // classes that share eps
  off = eps == 0 ? 0 : eps / static_cast<double>(smoothed);
  on = 1.0 - eps + (over_all ? off : 0);
  i64 counted = 0;
  for (i64 i = 0; i < ids.count(); ++i) {
    const i32 id = ids.data<i32>()[i];
    if (id == options.ignore_index) continue;
    check(id >= 0 && id < K, operation, "target ", id, " at position ", i, " is outside [0, ", K, ")");
    ++counted;
  }
  divisor = divisor_of(options, counted);
  check(divisor > 0 || (divisor == 0 && counted == 0), operation, "the divisor must be positive, got ", divisor);
  if (counted == 0) divisor = 1;  // loss and gradient are 0, and 0 / 0 would be NaN
  return ids.count();
}

}  // namespace orrery::kernels
