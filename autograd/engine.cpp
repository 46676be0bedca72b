// Chapter 2. The engine: visits nodes newest first, and lets each add to the gradients of its inputs.
//
// Chain rule: dL/dx = sum over all y computed from x of dL/dy dy/dx. A node's gradient is complete once every newer
// node has been visited, since only newer nodes can have used it. So a heap ordered by creation number replaces a
// topological sort. What a walk that fails must undo: autograd/walk_undo.h.
// Read next: autograd/saved.h
#include <algorithm>

#include "autograd/grads.h"
#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "autograd/walk_undo.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

bool older(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->number < b->number; }

// One run of `backward`.
class Walk {
 public:
  explicit Walk(bool keep) : keep_(keep) {}
  void run(const Variable& y, const Tensor& dy) {
    try {
      begin(y, dy);
      while (!waiting_.empty()) {
        take_newest();
        visit();
      }
    } catch (...) {
      undo_.restore(waiting_, current_.get());
      throw;
    }
  }

 private:
  void begin(const Variable& y, const Tensor& dy);
  void enqueue(const std::shared_ptr<Node>& node);
  void take_newest();
  void visit();

  const bool keep_;                             // the tape stays
  std::vector<std::shared_ptr<Node>> waiting_;  // a heap: nodes that have a gradient and were not visited yet
  std::shared_ptr<Node> current_;
  WalkUndo undo_;
};

void Walk::begin(const Variable& y, const Tensor& dy) {
  Edge start;
  lead_to(y, start);
  undo_.note_leaf(start, "this walk");
  enqueue(start.node);
  Tensor& seed = start.slot().gradient;
  seed = y.is_leaf() && seed.defined() ? add(seed, dy) : dy.clone();
}

void Walk::enqueue(const std::shared_ptr<Node>& node) {
  if (node->queued) return;
  waiting_.push_back(node);
  node->queued = true;
  std::push_heap(waiting_.begin(), waiting_.end(), older);
}

void Walk::take_newest() {
  std::pop_heap(waiting_.begin(), waiting_.end(), older);
  current_ = std::move(waiting_.back());
  waiting_.pop_back();
  current_->queued = false;
}

// Operations rely on a dy of the shape of their output. Only an observer that replaces a contribution by one of another
// shape can break this.
void check_shapes(const Node& node) {
  for (const OutputSlot& output : node.outputs)
    check(!output.gradient.defined() || output.gradient.shape() == output.shape, "engine", "a gradient of shape ",
          output.gradient.shape(), " reached an output of shape ", output.shape);
}

// Errors inside an operation's backward get its name.
void run_backward(Node& node, bool keep) {
  Observer* o = observer();
  const bool isolate = o && o->changes_contributions();
  Grads dx(node, isolate, keep);
  try {
    if (o) {
      check_shapes(node);
      o->backward_begins(node);
    }
    node.backward(dx);
    if (isolate) dx.finish();
    if (o) o->backward_ended(node);
  } catch (const Error& error) { throw Error(std::string(node.name) + " (backward)", error.what()); }
}

// A parameter keeps its gradient. Every other node passes it on to its inputs, and is then used up, unless the tape
// stays.
void Walk::visit() {
  Node& node = *current_;
  if (const Leaf* leaf = as_leaf(&node)) {
    if (Observer* o = observer()) o->leaf_reached(*leaf);
    return;
  }
  check(!node.walked, "backward", "this tape was walked before (at ", node.name,
        "); its saved values are gone, so compute the loss again");
  for (const Edge& edge : node.inputs) undo_.note_leaf(edge, node.name);
  run_backward(node, keep_);
  for (const Edge& edge : node.inputs)
    if (edge.node && edge.slot().gradient.defined()) enqueue(edge.node);
  if (keep_) return node.drop_gradients();
  node.use_up();
  node.inputs.clear();
}

}  // namespace

void backward(const Variable& loss) {
  check(loss.defined(), "backward", "the loss is not defined");
  check(loss.value().count() == 1, "backward", "needs a loss of one element, got shape ", loss.shape(),
        "; give dL/dy for anything else");
  backward(loss, full(loss.shape(), 1.0, loss.dtype()));
}

void backward(const Variable& y, const Tensor& dy, const BackwardOptions& options) {
  check(y.wants_gradient(), "backward",
        "nothing here wants a gradient: no parameter led to this value, all that did are frozen, or it was computed in "
        "no-gradient mode");
  check(dy.shape() == y.shape() && dy.dtype() == y.dtype(), "backward", "dL/dy is ", dy.dtype(), ' ', dy.shape(),
        ", y is ", y.dtype(), ' ', y.shape());
  Walk(options.keep).run(y, dy);
}

}  // namespace orrery
