// Chapter 3. What the gradient checker holds on to: the leaves, and the list of those that backward reached.
//
// Serves: autograd/check/proof.h
#pragma once

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/check/gradcheck.h"
#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {

/// A leaf under check. As long as this lives the leaf may be changed; then value and gradient are again what they were.
class CheckedLeaf {
 public:
  explicit CheckedLeaf(const NamedParameter& leaf)
      : name(leaf.name),
        leaf(leaf.value),
        original(leaf.value.value().clone()),
        gradient_before_(leaf.value.gradient()) {
    this->leaf.clear_gradient();
  }
  ~CheckedLeaf() {
    restore();
    leaf.mutable_gradient() = gradient_before_;
  }
  CheckedLeaf(const CheckedLeaf&) = delete;
  CheckedLeaf& operator=(const CheckedLeaf&) = delete;

  /// The bits the value had.
  void restore() { copy_into(leaf.mutable_value(), original); }
  i64 count() const { return original.count(); }
  /// dL/dx_i, 0 where backward did not reach the leaf.
  double gradient_at(i64 i) const { return analytic.defined() ? analytic.at(i) : 0.0; }

  const std::string name;
  Variable leaf;
  const Tensor original;
  Tensor analytic;  ///< not defined when backward did not reach the leaf

 private:
  Tensor gradient_before_;
};
using CheckedLeaves = std::vector<std::unique_ptr<CheckedLeaf>>;

/// Every leaf once. Errors: one that is not a parameter, or not f64.
inline CheckedLeaves checked_leaves(const Parameters& leaves) {
  CheckedLeaves checked;
  for (const NamedParameter& leaf : leaves) {
    check(leaf.value.defined() && leaf.value.is_leaf(), "gradcheck", leaf.name, " is not a parameter");
    check(leaf.value.dtype() == f64, "gradcheck", leaf.name, " is ", leaf.value.dtype(),
          "; a numeric gradient needs f64, so convert first");
    const bool known =
        std::any_of(checked.begin(), checked.end(), [&](const auto& h) { return h->leaf.node() == leaf.value.node(); });
    if (!known) checked.push_back(std::make_unique<CheckedLeaf>(leaf));
  }
  return checked;
}

/// Collects the leaves that backward reaches.
class ReachedLeaves final : public ForwardingObserver {
 public:
  void leaf_reached(const Leaf& leaf) override {
    ForwardingObserver::leaf_reached(leaf);
    leaves.push_back(&leaf);
  }

  std::vector<const Leaf*> leaves;
};

/// "parameter gate", or "a parameter of shape [4, 3] without a name, made after gate.bias": members are made in the
/// order in which their class declares them.
inline std::string description_of(const Leaf& leaf, const Parameters& listed) {
  if (!leaf.label.empty()) return leaf.origin();
  const NamedParameter* before = nullptr;
  for (const NamedParameter& other : listed)
    if (other.value.node()->number < leaf.number &&
        (!before || before->value.node()->number < other.value.node()->number))
      before = &other;
  std::ostringstream text;
  text << "a parameter of shape " << leaf.outputs[0].shape << " without a name, made "
       << (before ? "after " + before->name : "before all others");
  return text.str();
}

/// "weight[2, 3]" for element number `index`.
inline std::string place(const std::string& name, const Shape& shape, i64 index) {
  std::string indices;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (!indices.empty()) indices.insert(0, ", ");
    indices.insert(0, std::to_string(index % shape[axis]));
    index /= shape[axis];
  }
  return name + '[' + indices + ']';
}

}  // namespace orrery
