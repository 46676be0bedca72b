// Chapter 5. Cutting the random order of an epoch into batches.
#include "optim/batches.h"

#include <algorithm>
#include <span>

#include "core/tensor_ops.h"

namespace orrery::optim {

Batches::Batches(std::vector<Tensor> tensors, i64 size, const Rng& numbers)
    : tensors_(std::move(tensors)), size_(size), numbers_(numbers) {
  check(!tensors_.empty() && size > 0, "batches", "need a tensor and a size of at least 1, got ", tensors_.size(),
        " tensors and size ", size);
  for (const Tensor& x : tensors_) {
    check(x.defined() && x.rank() > 0 && x.size(0) > 0, "batches", "each tensor needs rows");
    rows_ = tensors_[0].size(0);
    check(x.size(0) == rows_, "batches", "the tensors have ", rows_, " and ", x.size(0), " rows");
  }
}

std::vector<Tensor> Batches::batch(i64 number) {
  check(number >= 0, "batches", "are counted from 0, got ", number);
  const i64 epoch = number / in_epoch(), begin = number % in_epoch() * size_, end = std::min(begin + size_, rows_);
  if (epoch != epoch_) {
    // Twice as many numbers as there are rows are reserved, since a draw may use several.
    order_ = Rng(numbers_.seed(), numbers_.position() + static_cast<u64>(2 * epoch * rows_)).permutation(rows_);
    epoch_ = epoch;
  }
  const std::span<const i64> chosen =
      std::span(order_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const Tensor ids = Tensor::of({end - begin}, chosen);
  std::vector<Tensor> result;
  for (const Tensor& x : tensors_) result.push_back(index_rows(x, ids));
  return result;
}

}  // namespace orrery::optim
