// Chapter 5. Batches of examples in random order, each example once in every epoch.
#pragma once

#include <vector>

#include "core/random.h"
#include "core/tensor.h"

namespace orrery::optim {

/// Rows of tensors that belong together, such as pictures and labels:
///   optim::Batches batches({pictures, labels}, 32, Rng(1));
///   for (i64 step = 0; step < 10 * batches.in_epoch(); ++step) {
///     const std::vector<Tensor> batch = batches.batch(step);  // {[32, ...], [32]}
class Batches {
 public:
  /// The tensors have the same number of rows (entries along axis 0). `numbers` decides the order of every epoch.
  /// Errors: no tensor; another number of rows, or none; a size below 1.
  Batches(std::vector<Tensor> tensors, i64 size, const Rng& numbers);

  /// The number of batches in an epoch. The last one may be smaller.
  i64 in_epoch() const { return (rows_ + size_ - 1) / size_; }
  /// Batch number `number`, counted from 0 over all epochs. It depends on nothing else: a training that goes on at any
  /// step sees what it would have seen.
  std::vector<Tensor> batch(i64 number);

 private:
  std::vector<Tensor> tensors_;
  i64 rows_ = 0, size_, epoch_ = -1;
  Rng numbers_;
  std::vector<i64> order_;  // of this epoch
};

}  // namespace orrery::optim
