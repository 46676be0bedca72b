// Chapter 2. Leaf: the node of a parameter, where gradients end up.
#pragma once

#include "autograd/node.h"

namespace orrery {

/// The node of a parameter. It has no inputs, and keeps its gradient until an optimiser has used it.
class Leaf final : public Node {
 public:
  explicit Leaf(std::string label);
  void backward(Grads&) override {}
  void release() override {}
  std::string origin() const override;
  /// Error of `operation` if the gradient is lost.
  void check_gradient(std::string_view operation) const;

  std::string label;
  /// A failed walk changed the sum of earlier walks. The sum cannot be restored, so the gradient was dropped.
  bool gradient_lost = false;
  bool replaced = false;  ///< `replace_value` gave the parameter another leaf; only copies made before have this one
};

}  // namespace orrery
