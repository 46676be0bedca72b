// Chapter 2. What a failed backward pass undoes: gradients inside the tape, and those it had added to.
#include "autograd/walk_undo.h"

#include "autograd/leaf.h"

namespace orrery {
namespace {

void check_leaf(const Leaf& leaf, const Edge& edge, std::string_view user) {
  leaf.check_gradient("backward");
  const OutputSlot& slot = edge.slot();
  if (leaf.replaced)
    fail("backward", user, " read ", leaf.origin(),
         " before another value replaced it (replace_value, nn::to); compute the loss again");
  const Tensor& g = slot.gradient;
  if (g.defined() && (g.shape() != slot.shape || g.dtype() != slot.dtype))
    fail("backward", leaf.origin(), " is ", slot.dtype, ' ', slot.shape, ", its gradient ", g.dtype(), ' ', g.shape(),
         ": mutable_gradient was given another tensor");
}

// Gradients that wait inside the tape would be added to those of the next walk.
void drop_gradients(Node& node) {
  node.queued = false;
  if (!node.is_leaf) node.drop_gradients();
}

}  // namespace

void WalkUndo::note_leaf(const Edge& edge, std::string_view user) {
  const Leaf* leaf = as_leaf(edge.node.get());
  if (!leaf || leaf->queued) return;  // a leaf that waits was noted before
  check_leaf(*leaf, edge, user);
  const Tensor& g = edge.slot().gradient;
  leaves_.push_back({edge.node, address_of(g), g.defined() ? g.version() : 0});
}

// The node that failed may have overwritten what it saved, and written to the gradients of its inputs, which may not be
// among `waiting` yet. A leaf is noted until a gradient has arrived. Its first note describes it before the walk, and
// is therefore applied last.
void WalkUndo::restore(std::span<const std::shared_ptr<Node>> waiting, Node* current) noexcept {
  for (const auto& node : waiting) drop_gradients(*node);
  if (current && !current->is_leaf) {
    for (const Edge& edge : current->inputs)
      if (edge.node) drop_gradients(*edge.node);
    current->use_up();
    current->inputs.clear();
  }
  for (size_t i = leaves_.size(); i-- > 0;) {
    const NotedLeaf& before = leaves_[i];
    Leaf& leaf = *as_leaf(before.node.get());
    Tensor& g = leaf.outputs[0].gradient;
    if (before.gradient && address_of(g) == before.gradient && g.version() == before.version) continue;
    leaf.gradient_lost = before.gradient != nullptr;
    g = Tensor();
  }
}

}  // namespace orrery
