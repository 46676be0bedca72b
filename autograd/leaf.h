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

/// The node as a Leaf; null if it is another node, or none. Cheaper than dynamic_cast, which small operations would
/// notice.
inline Leaf* as_leaf(Node* node) { return node && node->is_leaf ? static_cast<Leaf*>(node) : nullptr; }
inline const Leaf* as_leaf(const Node* node) { return as_leaf(const_cast<Node*>(node)); }

}  // namespace orrery
