// Chapter 4. Cross entropy, the loss of classes, and losses of numbers and distributions.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// The two forms of label smoothing: eps is spread over all K classes (PyTorch), or over the K - 1 wrong ones
/// (fairseq).
enum class Smoothing { all_classes, wrong_classes };
/// What the summed loss is divided by: the number of targets that count; nothing; the caller's divisor.
enum class Reduction { mean, sum, divisor };
struct CrossEntropyOptions {
  i32 ignore_index = -100;     ///< targets with this id do not count
  double label_smoothing = 0;  ///< eps, in [0, 1]
  Smoothing smoothing = Smoothing::all_classes;
  Reduction reduction = Reduction::mean;
  /// For Reduction::divisor; 0 only if no target counts. With the divisor of a whole batch, the gradients of its
  /// micro-batches add up to those of the batch.
  double divisor = 1;
};

/// -sum_k q_k log softmax(logits)_k, summed over the targets that count and divided as `reduction` says; q is 1 for the
/// target and 0 for all other classes, or smoothed. logits [..., K], targets i32 [...]; the loss has shape []. If no
/// target counts, loss and gradient are 0. Errors: shapes or dtypes that do not fit; a target that is not a class;
/// smoothing outside [0, 1], or over the wrong classes if K is 1; a divisor that is not positive, or that is given
/// without Reduction::divisor.
Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options = {});

/// What the summed loss is divided by, as in `cross_entropy`: with Reduction::mean by the number of targets, each of
/// which counts.
struct LossOptions {
  Reduction reduction = Reduction::mean;
  double divisor = 1;  ///< for Reduction::divisor
};

// The loss has shape []; of no target it is 0, with gradient 0. Errors: targets of another shape or dtype; a divisor
// that is not positive, or that is given without Reduction::divisor.

/// (y - target)^2 for each number.
Variable mse(const Variable& y, const Tensor& targets, const LossOptions& options = {});
/// -t ln s(x) - (1 - t) ln(1 - s(x)) for each logit x and its target t in [0, 1], with s(x) = 1 / (1 + e^{-x}): for
/// questions of yes or no, and for labels of which several may be right.
Variable bce_with_logits(const Variable& logits, const Tensor& targets, const LossOptions& options = {});
/// sum_k q_k (ln q_k - log_p_k) for each row of the last axis, where 0 ln 0 is 0: how far the probabilities p are from
/// the target q. `log_p` comes from log_softmax. A target is a row: the mean is torch's "batchmean", not its "mean",
/// which also divides by the number of classes.
Variable kl_divergence(const Variable& log_p, const Tensor& q, const LossOptions& options = {});

}  // namespace orrery
