// Chapter 2. Variables: constants, parameters, and the mode in which nothing is recorded.
#include "autograd/variable.h"

#include "autograd/leaf.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

thread_local bool recording = true;

Leaf& leaf_of(const Variable& x, std::string_view operation, std::string_view rule = "only a parameter has one") {
  Leaf* leaf = as_leaf(x.node().get());
  check(leaf != nullptr, operation, rule);
  return *leaf;
}

}  // namespace

Leaf::Leaf(std::string label) : Node("parameter", true), label(std::move(label)) {}

std::string Leaf::origin() const { return label.empty() ? "a parameter without a name" : "parameter " + label; }

void Leaf::check_gradient(std::string_view operation) const {
  if (!gradient_lost) return;
  fail(operation, "the gradient of ", origin(),
       " is lost, since a backward pass that had added to it failed; clear all gradients and compute the step again");
}

bool Variable::wants_gradient() const { return node_ && !node_->frozen; }
bool Variable::is_frozen() const { return node_ && node_->frozen; }
bool Variable::is_leaf() const { return node_ && node_->is_leaf; }
void Variable::clear_gradient() { mutable_gradient() = Tensor(); }
const std::string& Variable::name() const { return leaf_of(*this, "name").label; }

const Tensor& Variable::gradient() const {
  const Leaf& leaf = leaf_of(*this, "gradient");
  leaf.check_gradient("gradient");
  return leaf.outputs[0].gradient;
}

// A lost gradient was dropped when it was lost, so the caller finds an undefined tensor to write to.
Tensor& Variable::mutable_gradient() {
  Leaf& leaf = leaf_of(*this, "gradient");
  leaf.gradient_lost = false;
  return leaf.outputs[0].gradient;
}

void Variable::set_frozen(bool frozen) {
  Leaf& leaf = leaf_of(*this, "set_frozen", "only a parameter can be frozen");
  if (leaf.frozen == frozen) return;
  leaf.frozen = frozen;
  clear_gradient();
}

// An equal name is not written again, since threads that share a model may all ask for its parameters.
void Variable::set_name(std::string name) {
  std::string& label = leaf_of(*this, "name").label;
  if (label != name) label = std::move(name);
}

void Variable::replace_value(Tensor value) {
  check(value.defined() && is_floating(value.dtype()), "replace_value", "needs a tensor of f32 or f64");
  Leaf& old = leaf_of(*this, "replace_value", "only a parameter can be given another value");
  Variable replacement = parameter(std::move(value), old.label);
  replacement.set_frozen(old.frozen);
  old.replaced = true;
  *this = std::move(replacement);
}

bool Variable::is_replaced() const {
  const Leaf* leaf = as_leaf(node_.get());
  return leaf && leaf->replaced;
}

Variable constant(Tensor value) {
  check(value.defined() && is_floating(value.dtype()), "constant", "needs a tensor of f32 or f64");
  return {std::move(value), nullptr};
}

Variable parameter(Tensor value, std::string name) {
  check(value.defined() && is_floating(value.dtype()), "parameter", "needs a tensor of f32 or f64");
  auto leaf = std::make_shared<Leaf>(std::move(name));
  leaf->outputs.resize(1);
  leaf->outputs[0].shape = value.shape();
  leaf->outputs[0].dtype = value.dtype();
  return {std::move(value), std::move(leaf)};
}

Variable detach(const Variable& x) { return {x.value(), nullptr}; }

Tensor grad(const std::function<Variable(const Variable&)>& f, const Tensor& x) {
  check(gradients_are_recorded(), "grad", "NoGradient is in force: nothing is recorded");
  const Variable leaf = parameter(x);
  const Variable y = f(leaf);
  check(y.defined() && y.value().count() == 1, "grad", "the function must return one number");
  if (y.wants_gradient()) backward(y);
  return leaf.gradient().defined() ? leaf.gradient() : zeros(x.shape(), x.dtype());
}

NoGradient::NoGradient() : before_(recording) { recording = false; }
NoGradient::~NoGradient() { recording = before_; }
bool gradients_are_recorded() { return recording; }

std::ostream& operator<<(std::ostream& out, const Variable& x) {
  if (!x.defined()) return out << "(no variable)";
  return out << x.value() << "  from " << (x.node() ? x.node()->origin() : "a constant");
}

}  // namespace orrery
