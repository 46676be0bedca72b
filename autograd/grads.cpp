// Chapter 2. Adding up gradients, and un-broadcasting.
#include "autograd/grads.h"

#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {

// Fills the edge where it stands: of a returned one, a move reads both pointers at once while each is still being
// written, for which the CPU waits.
void lead_to(const Variable& x, Edge& edge) {
  if (!x.node()) return;
  const OutputSlot& slot = x.node()->outputs[static_cast<size_t>(x.output())];
  if (x.shape() != slot.shape || x.dtype() != slot.dtype)
    fail("tape", x.node()->origin(), " is ", slot.dtype, ' ', slot.shape, ", but mutable_value was given ", x.dtype(),
         ' ', x.shape(), "; replace_value gives a parameter another shape or dtype");
  if (!x.wants_gradient()) return;
  edge.node = x.node();
  edge.output = x.output();
}

void GradientBuffer::gemm(const Tensor& a, const Tensor& b, Trans trans) const {
  matmul_into(buffer, a, b, trans, !is_new);
}

Grads::Grads(Node& node, bool isolate, bool keep) : node_(node), isolate_(isolate), keep_(keep) {
  if (isolate_) contributions_.resize(node.inputs.size());
}

OutputSlot& Grads::slot(size_t i) const {
  check(wanted(i), node_.name, "backward asks for the gradient of input ", i, ", which needs none; check wanted(", i,
        ") first");
  return node_.inputs[i].slot();
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

void accumulate(const Edge& edge, const Tensor& g) { add_up(edge.slot().gradient, g, edge.node->is_leaf); }

// Un-broadcasting: where an input was repeated, its gradient is the sum over all repetitions.
void sum_down(Tensor& g, const Shape& shape) {
  if (g.shape() != shape) g = sum_to(g, shape);
}

}  // namespace

void Grads::add(size_t i, Tensor g) {
  if (!wanted(i)) return;
  const Edge& edge = node_.inputs[i];
  const OutputSlot& to = edge.slot();
  check(g.dtype() == to.dtype, node_.name, "backward made a gradient of dtype ", g.dtype(), " for an input of ",
        to.dtype);
  if (isolate_ && !contributions_[i].defined()) return add_up(contributions_[i], g, true);
  sum_down(g, to.shape);
  if (!isolate_) return accumulate(edge, g);
  sum_down(contributions_[i], to.shape);
  add_up(contributions_[i], g, true);
}

GradientBuffer Grads::into(size_t i) {
  OutputSlot& output = slot(i);
  Tensor& buffer = isolate_ ? contributions_[i] : output.gradient;
  const bool is_new = !buffer.defined();
  if (is_new)
    buffer = Tensor::empty(shape(i), dtype(i));
  else if (isolate_ && buffer.shape() != shape(i))
    sum_down(buffer, shape(i));
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
    sum_down(contributions_[i], shape(i));
    if (Observer* o = observer()) o->contribution(node_, i, contributions_[i]);
    if (contributions_[i].defined()) accumulate(node_.inputs[i], contributions_[i]);
  }
}

}  // namespace orrery
