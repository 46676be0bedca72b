// Chapter 2. Saved: a tensor that an operation keeps for its backward, and the version the tensor had.
//
// If its memory were changed in place before backward runs, the gradient would be computed from other numbers than the
// output, and be silently wrong. So `get` reports such a change as an error.
// Read next: autograd/apply.h
#pragma once

#include <utility>

#include "core/tensor.h"

namespace orrery {

/// Assign a tensor in forward, read it in backward.
class Saved {
 public:
  Saved() = default;
  Saved(Tensor tensor) : tensor_(std::move(tensor)), version_(tensor_.defined() ? tensor_.version() : 0) {}

  /// The tensor as it was saved. Error: it was changed in place since then.
  const Tensor& get() const {
    if (tensor_.defined() && tensor_.version() != version_) {
      fail("saved tensor", "a tensor of shape ", tensor_.shape(),
           " that backward needs was changed in place after forward (version ", version_, " -> ", tensor_.version(),
           ")");
    }
    return tensor_;
  }
  operator const Tensor&() const { return get(); }
  bool defined() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  u64 version_ = 0;
};

}  // namespace orrery
