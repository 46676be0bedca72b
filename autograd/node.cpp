// Chapter 2. Nodes: numbering, freeing long chains, and adding up gradients.
#include "autograd/node.h"

#include <atomic>

#include "autograd/observer.h"
#include "core/kernels/reduce.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {
std::atomic<u64> next_number{1};
thread_local Observer* current_observer = nullptr;
}  // namespace

Node::Node(std::string_view name) : name(name), number(next_number++) {}

// A chain of a million nodes must not be freed by a million nested destructors. So the first destructor takes all nodes
// that nobody else owns out of their edges, and frees them one after another. They wait in a list that links the nodes
// themselves: a destructor that allocated memory would end the program when there is none left.
Node::~Node() {
  std::shared_ptr<Node> dying;
  const auto take_inputs = [&dying](Node& of) {
    for (Edge& edge : of.inputs) {
      std::shared_ptr<Node> input = std::move(edge.node);
      if (input.use_count() != 1) continue;
      std::atomic_thread_fence(std::memory_order_acquire);  // other threads are finished with it (Tensor::sole_owner)
      input->next_dying_ = std::move(dying);
      dying = std::move(input);
    }
    of.inputs.clear();
  };
  take_inputs(*this);
  while (dying) {
    const std::shared_ptr<Node> node = std::move(dying);
    dying = std::move(node->next_dying_);
    take_inputs(*node);
  }
}

void Node::use_up() {
  walked = true;
  release();
  for (OutputSlot& output : outputs) output.gradient = Tensor();
}

OutputSlot& Edge::slot() const { return node->outputs[static_cast<size_t>(output)]; }

Leaf::Leaf(std::string label) : Node("parameter"), label(std::move(label)) {}

std::string Leaf::origin() const { return label.empty() ? "a parameter without a name" : "parameter " + label; }

void Leaf::check_gradient(std::string_view operation) const {
  if (!gradient_lost) return;
  fail(operation, "the gradient of ", origin(),
       " is lost, since a backward pass that had added to it failed; clear all gradients and compute the step again");
}

Edge edge_to(const Variable& x) {
  if (!x.node()) return {};
  const OutputSlot& slot = x.node()->outputs[static_cast<size_t>(x.output())];
  if (x.shape() != slot.shape || x.dtype() != slot.dtype)
    fail("tape", x.node()->origin(), " is ", slot.dtype, ' ', slot.shape, ", but what was given for it is ", x.dtype(),
         ' ', x.shape(), "; only replace_value changes a shape or dtype, and copies made before it keep the old value");
  if (!x.wants_gradient()) return {};
  const Leaf* leaf = x.node()->inputs.empty() ? dynamic_cast<const Leaf*>(x.node().get()) : nullptr;
  return {x.node(), x.output(), leaf ? static_cast<u32>(leaf->earlier_layouts.size()) : 0};
}

void GradientBuffer::gemm(const Tensor& a, const Tensor& b, Trans trans) const {
  matmul_into(buffer, a, b, trans, !is_new);
}

Grads::Grads(Node& node, bool isolate) : node_(node), isolate_(isolate) {
  if (isolate_) contributions_.resize(node.inputs.size());
}

OutputSlot& Grads::slot(size_t i) const {
  check(wanted(i), node_.name, "backward asks for the gradient of input ", i, ", which needs none; check wanted(", i,
        ") first");
  return node_.inputs[i].slot();
}

const void* address_of(const Tensor& x) {
  if (!x.defined()) return nullptr;
  return dispatch(x.dtype(), [&](auto t) { return static_cast<const void*>(x.data<decltype(t)>()); });
}

namespace {

// total += g. A buffer that others share is never written to: the sum then goes into a new one.
void add_up(Tensor& total, const Tensor& g, bool keep) {
  if (!total.defined()) {
    // A leaf's gradient is scaled in place by clipping, so it must not share memory; inside the graph sharing is
    // harmless.
    total = keep && !g.sole_owner() ? g.clone() : g;
  } else if (total.sole_owner()) {
    add_in_place(total, g);
  } else {
    total = add(total, g);
  }
}

}  // namespace

void Grads::add(size_t i, Tensor g) {
  if (!wanted(i)) return;
  check(g.dtype() == dtype(i), node_.name, "backward made a gradient of dtype ", g.dtype(), " for an input of ",
        dtype(i));
  if (isolate_ && !contributions_[i].defined()) return add_up(contributions_[i], g, true);
  sum_down(i, g);
  if (!isolate_) return accumulate(i, g);
  sum_down(i, contributions_[i]);
  add_up(contributions_[i], g, true);
}

// Un-broadcasting: where an input was repeated, its gradient is the sum over all repetitions.
void Grads::sum_down(size_t i, Tensor& g) const {
  if (g.shape() != shape(i)) g = sum_to(g, shape(i));
}

void Grads::accumulate(size_t i, const Tensor& g) {
  const bool is_leaf = dynamic_cast<const Leaf*>(node_.inputs[i].node.get()) != nullptr;
  add_up(slot(i).gradient, g, is_leaf);
}

GradientBuffer Grads::into(size_t i) {
  OutputSlot& output = slot(i);
  Tensor& buffer = isolate_ ? contributions_[i] : output.gradient;
  const bool is_new = !buffer.defined();
  if (is_new)
    buffer = Tensor::empty(shape(i), dtype(i));
  else if (isolate_ && buffer.shape() != shape(i))
    sum_down(i, buffer);
  else if (!buffer.sole_owner())
    buffer = buffer.clone();
  return {buffer, is_new};
}

Tensor Grads::reuse(const Tensor& x) const {
  return !isolate_ && x.sole_owner() ? x : Tensor::empty(x.shape(), x.dtype());
}

void Grads::finish() {
  for (size_t i = 0; i < contributions_.size(); ++i) {
    if (!contributions_[i].defined()) continue;
    sum_down(i, contributions_[i]);
    if (Observer* o = observer()) o->contribution(node_, i, contributions_[i]);
    if (contributions_[i].defined()) accumulate(i, contributions_[i]);
  }
}

Observer* observer() { return current_observer; }
ObserverScope::ObserverScope(Observer& observer) : before_(current_observer) { current_observer = &observer; }
ObserverScope::~ObserverScope() { current_observer = before_; }

}  // namespace orrery
