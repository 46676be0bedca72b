// Chapter 4. Cross entropy, the loss.
//
// Serves: autograd/ops/cross_entropy.cpp
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// The two forms of label smoothing: eps is spread over all K classes (PyTorch), or over the K - 1 wrong ones
/// (fairseq).
enum class Smoothing { all_classes, wrong_classes };
/// What the summed loss is divided by: the number of targets that count; nothing; the caller's divisor.
enum class Reduction { mean, sum, divisor };
struct CrossEntropyOptions {
  i32 ignore_index = -100;  ///< targets with this id do not count
  double label_smoothing = 0;
  Smoothing smoothing = Smoothing::all_classes;
  Reduction reduction = Reduction::mean;
  double divisor = 1;  ///< for Reduction::divisor; 0 only if no target counts. Makes k micro-batches equal to one batch
};

/// -sum_k q_k log softmax(logits)_k, summed over the targets that count; logits [..., K], targets i32 [...]. If no
/// target counts, loss and gradient are 0.
Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options = {});

}  // namespace orrery
