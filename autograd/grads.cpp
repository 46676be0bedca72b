// Chapter 2. Adding up gradients, and un-broadcasting.
#include "autograd/grads.h"

#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "core/tensor_ops.h"

namespace orrery {

Edge edge_to(const Variable& x) {
  if (!x.node()) return {};
  const OutputSlot& slot = x.node()->outputs[static_cast<size_t>(x.output())];
  if (x.shape() != slot.shape || x.dtype() != slot.dtype)
    fail("tape", x.node()->origin(), " is ", slot.dtype, ' ', slot.shape, ", but mutable_value was given ", x.dtype(),
         ' ', x.shape(), "; replace_value gives a parameter another shape or dtype");
  if (!x.wants_gradient()) return {};
  return {x.node(), x.output()};
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

void Grads::accumulate(size_t i, const Tensor& g) { add_up(slot(i).gradient, g, node_.inputs[i].node->is_leaf); }

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

}  // namespace orrery
