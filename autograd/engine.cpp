// Chapter 2. The engine: visits nodes newest first, and lets each add to the gradients of its inputs.
//
// Chain rule: dL/dx = sum over all y computed from x of dL/dy dy/dx. A node's gradient is complete once every newer
// node has been visited, since only newer nodes can have used it. So a heap ordered by creation number replaces a
// topological sort.
// Read next: autograd/saved.h
#include <algorithm>

#include "autograd/node.h"
#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

bool older(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->number < b->number; }

OutputSlot& slot_of(const Edge& edge) { return edge.node->outputs[static_cast<size_t>(edge.output)]; }

const void* address_of(const Tensor& x) {
  if (!x.defined()) return nullptr;
  return dispatch(x.dtype(), [&](auto t) { return static_cast<const void*>(x.data<decltype(t)>()); });
}

// Holds by construction, unless an observer broke a rule: operations rely on it.
void check_shapes(const Node& node) {
  for (const OutputSlot& output : node.outputs)
    check(!output.gradient.defined() || output.gradient.shape() == output.shape, "engine", "a gradient of shape ",
          output.gradient.shape(), " reached an output of shape ", output.shape);
}

// A parameter must be of the form in which `user` read it, or the gradient would be written beyond its place.
void check_leaf(const Leaf& leaf, const Edge& edge, std::string_view user) {
  leaf.check_gradient("backward");
  const OutputSlot& slot = slot_of(edge);
  if (edge.form < leaf.earlier_forms.size()) {
    const Leaf::Form& then = leaf.earlier_forms[edge.form];
    if (then.shape != slot.shape || then.dtype != slot.dtype)
      fail("backward", leaf.origin(), " was ", then.dtype, ' ', then.shape, " when ", user, " read it, and is now ",
           slot.dtype, ' ', slot.shape, ": replace_value came between forward and backward, so compute the loss again");
  }
  const Tensor& g = slot.gradient;
  const bool fits = !g.defined() || (g.shape() == slot.shape && g.dtype() == slot.dtype);
  if (!fits && !broken(EngineRule::unbroadcast))
    fail("backward", leaf.origin(), " is ", slot.dtype, ' ', slot.shape, ", its gradient ", g.dtype(), ' ', g.shape(),
         ": mutable_gradient was given another tensor");
}

// Errors inside an operation's backward get its name.
void run_backward(Node& node) {
  Observer* o = observer();
  const bool isolate = o && o->changes_contributions();
  Grads dx(node, isolate);
  try {
    if (o) check_shapes(node), o->backward_begins(node);
    node.backward(dx);
    if (isolate) dx.finish();
    if (o) o->backward_ended(node);
  } catch (const Error& error) { throw Error(std::string(node.name) + " (backward)", error.what()); }
}

// Everything the node kept is let go.
void pass(Node& node) {
  node.walked = true;
  node.release();
  for (OutputSlot& output : node.outputs) output.gradient = Tensor();
}

// One run of `backward`: the nodes whose turn will come, and what must be undone if it fails.
class Walk {
 public:
  void run(const Variable& y, const Tensor& dy) {
    try {
      begin(y, dy);
      while (!waiting_.empty()) {
        take_newest();
        visit();
      }
    } catch (...) {
      undo();
      throw;
    }
  }

 private:
  // A parameter that is about to be added to, and its gradient until then: to hold the tensor itself would make the
  // engine copy it before it adds.
  struct ReachedLeaf {
    std::shared_ptr<Node> node;
    const void* gradient;  // null if it had none
    u64 version;
  };

  void begin(const Variable& y, const Tensor& dy);
  void enqueue(const std::shared_ptr<Node>& node);
  void take_newest();
  void visit();
  void note_leaf(const Edge& edge, std::string_view user);
  void undo() noexcept;

  CachedVector<std::shared_ptr<Node>> waiting_;  // a heap
  CachedVector<ReachedLeaf> leaves_;
  std::shared_ptr<Node> current_;
};

void Walk::begin(const Variable& y, const Tensor& dy) {
  const Edge start = edge_to(y);
  note_leaf(start, "this walk");
  enqueue(start.node);
  Tensor& seed = slot_of(start).gradient;
  seed = y.is_leaf() && seed.defined() ? add(seed, dy) : dy.clone();
}

void Walk::enqueue(const std::shared_ptr<Node>& node) {
  if (node->queued) return;
  waiting_.push_back(node);
  node->queued = true;
  std::push_heap(waiting_.begin(), waiting_.end(), older);
}

void Walk::take_newest() {
  if (waiting_.size() > 1 && broken(EngineRule::newest_first)) {
    std::sort(waiting_.begin(), waiting_.end(), [](const auto& a, const auto& b) { return older(b, a); });
  } else {
    std::pop_heap(waiting_.begin(), waiting_.end(), older);
  }
  current_ = std::move(waiting_.back());
  waiting_.pop_back();
  current_->queued = false;
}

// Backward, then everything the node kept is let go.
void Walk::visit() {
  Node& node = *current_;
  if (const auto* leaf = dynamic_cast<const Leaf*>(&node)) {
    if (Observer* o = observer()) o->leaf_reached(*leaf);
    return;
  }
  check(!node.walked, "backward", "this tape was walked before (at ", node.name,
        "); its saved values are gone, so compute the loss again");
  for (const Edge& edge : node.inputs) note_leaf(edge, node.name);
  run_backward(node);
  pass(node);
  for (const Edge& edge : node.inputs)
    if (edge.node && slot_of(edge).gradient.defined()) enqueue(edge.node);
  node.inputs.clear();
}

// Only parameters, and nodes that were walked, have no inputs.
void Walk::note_leaf(const Edge& edge, std::string_view user) {
  if (!edge.node || !edge.node->inputs.empty()) return;
  const auto* leaf = dynamic_cast<const Leaf*>(edge.node.get());
  if (!leaf) return;
  check_leaf(*leaf, edge, user);
  const Tensor& g = slot_of(edge).gradient;
  leaves_.push_back({edge.node, address_of(g), g.defined() ? g.version() : 0});
}

// Gradients that wait inside the tape would be added to those of the next walk. The node that failed may have written
// over what it saved, and into the gradients of its inputs, which need not wait yet. A leaf is noted at each use; the
// first tells what it had before the walk, and therefore comes last here.
void Walk::undo() noexcept {
  const auto forget = [](Node& node) {
    node.queued = false;
    if (dynamic_cast<const Leaf*>(&node)) return;
    for (OutputSlot& output : node.outputs) output.gradient = Tensor();
  };
  for (const auto& node : waiting_) forget(*node);
  if (current_ && !dynamic_cast<const Leaf*>(current_.get())) {
    for (const Edge& edge : current_->inputs)
      if (edge.node) forget(*edge.node);
    pass(*current_);
    current_->inputs.clear();
  }
  for (size_t i = leaves_.size(); i-- > 0;) {
    const ReachedLeaf& before = leaves_[i];
    Leaf& leaf = dynamic_cast<Leaf&>(*before.node);
    Tensor& g = leaf.outputs[0].gradient;
    if (before.gradient && address_of(g) == before.gradient && g.version() == before.version) continue;
    leaf.gradient_lost = before.gradient != nullptr;
    g = Tensor();
  }
}

}  // namespace

void backward(const Variable& loss) {
  check(loss.defined() && loss.value().count() == 1, "backward", "needs a loss of one element, got shape ",
        loss.shape(), "; give dL/dy for anything else");
  backward(loss, full(loss.shape(), 1.0, loss.dtype()));
}

void backward(const Variable& y, const Tensor& dy) {
  check(y.wants_gradient(), "backward",
        "nothing here wants a gradient: no parameter led to this value, or it was computed "
        "in no-gradient mode");
  check(dy.shape() == y.shape() && dy.dtype() == y.dtype(), "backward", "dL/dy is ", dy.dtype(), ' ', dy.shape(),
        ", y is ", y.dtype(), ' ', y.shape());
  Walk().run(y, dy);
}

}  // namespace orrery
