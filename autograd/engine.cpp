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

using Waiting = CachedVector<std::shared_ptr<Node>>;

bool older(const std::shared_ptr<Node>& a, const std::shared_ptr<Node>& b) { return a->number < b->number; }

void enqueue(Waiting& waiting, const std::shared_ptr<Node>& node) {
  if (node->queued) return;
  node->queued = true;
  waiting.push_back(node);
  std::push_heap(waiting.begin(), waiting.end(), older);
}

std::shared_ptr<Node> take_newest(Waiting& waiting) {
  if (waiting.size() > 1 && broken(EngineRule::newest_first)) {
    std::sort(waiting.begin(), waiting.end(), [](const auto& a, const auto& b) { return older(b, a); });
  } else {
    std::pop_heap(waiting.begin(), waiting.end(), older);
  }
  std::shared_ptr<Node> node = std::move(waiting.back());
  waiting.pop_back();
  node->queued = false;
  return node;
}

// Nodes still waiting when a pass ends early (an error) must be able to wait again in the next one.
struct Unqueue {
  Waiting& waiting;
  ~Unqueue() {
    for (const auto& node : waiting) node->queued = false;
  }
};

// Holds by construction, unless an observer broke a rule: operations rely on it.
void check_shapes(const Node& node) {
  for (const OutputSlot& output : node.outputs)
    check(!output.gradient.defined() || output.gradient.shape() == output.shape, "engine", "a gradient of shape ",
          output.gradient.shape(), " reached an output of shape ", output.shape);
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

// One visit: backward, then everything the node kept is let go.
void visit(Node& node, Waiting& waiting) {
  check(!node.walked, "backward", "this tape was walked before (at ", node.name,
        "); its saved values are gone, so compute the loss again");
  run_backward(node);
  node.walked = true;
  node.release();
  for (OutputSlot& output : node.outputs) output.gradient = Tensor();
  for (const Edge& edge : node.inputs) {
    if (edge.node && edge.node->outputs[static_cast<size_t>(edge.output)].gradient.defined())
      enqueue(waiting, edge.node);
  }
  node.inputs.clear();
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
  Waiting waiting;
  const Unqueue at_the_end{waiting};
  Tensor& seed = y.node()->outputs[static_cast<size_t>(y.output())].gradient;
  seed = y.is_leaf() && seed.defined() ? add(seed, dy) : dy.clone();
  enqueue(waiting, y.node());
  while (!waiting.empty()) {
    const std::shared_ptr<Node> node = take_newest(waiting);
    if (const auto* leaf = dynamic_cast<const Leaf*>(node.get())) {
      if (Observer* o = observer()) o->leaf_reached(*leaf);
    } else {
      visit(*node, waiting);
    }
  }
}

}  // namespace orrery
