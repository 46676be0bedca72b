// Chapter 4. The target distribution q over the classes, with which cross entropy compares the model's probabilities.
//
// Paper, section 5.4: "we employed label smoothing of value eps_ls = 0.1. This hurts perplexity, as the model learns to
// be more unsure, but improves accuracy and BLEU score." q is `on` at the target and `off` elsewhere:
//   over all classes:    on = 1 - eps + eps / K    off = eps / K            (PyTorch)
//   over wrong classes:  on = 1 - eps              off = eps / (K - 1)      (fairseq)
// Used by ops/cross_entropy.cpp and, fused with the head, by linear_cross_entropy.cpp.
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "autograd/saved.h"

namespace orrery::kernels {

struct TargetDistribution {
  Saved targets;
  CrossEntropyOptions options;
  double on = 1, off = 0;
  double divisor = 1;  ///< of the summed loss

  /// Works out q and the divisor for rows of K classes, and returns the number of rows. Errors: targets that are not
  /// i32, have another shape than the rows, or are not classes; smoothing outside [0, 1]; a divisor that is not
  /// positive, or that is given without Reduction::divisor.
  i64 prepare(std::string_view operation, const Shape& rows, i64 K);
};

}  // namespace orrery::kernels
