// Chapter 2. Variable: a Tensor plus where it came from.
//
// A value that was computed points at the node that computed it; a parameter points at its leaf, which collects its
// gradient; a constant points at nothing. Edges of the graph hold nodes and never values, so that an activation dies as
// soon as neither the user nor an operation needs it.
//
// Several threads may work at once, each with its own model. A model may be shared as long as no thread changes its
// parameters. What changes them: autograd/README.md.
// Read next: autograd/node.h
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace orrery {

class Node;

/// A tensor in a computation. Copies are cheap and mean the same value; a parameter's copies share its gradient.
class Variable {
 public:
  /// An undefined variable: for something optional that is missing, such as a bias.
  Variable() = default;
  /// Output `output` of `node`; used by `apply`.
  Variable(Tensor value, std::shared_ptr<Node> node, int output = 0)
      : value_(std::move(value)), node_(std::move(node)), output_(output) {}

  bool defined() const { return value_.defined(); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Dtype dtype() const { return value_.dtype(); }
  i64 size(int axis) const { return value_.size(axis); }
  double item() const { return value_.item(); }

  /// The node this value came from; null for a constant.
  const std::shared_ptr<Node>& node() const { return node_; }
  /// Which of that node's outputs it is.
  int output() const { return output_; }
  /// True when a gradient flows back through this value.
  bool wants_gradient() const;

  /// True for what `parameter` made.
  bool is_leaf() const;
  /// dL/d(this) of a parameter, as `backward` left it; not defined while nothing has reached it. Error: a backward pass
  /// that failed had added to it, so it was dropped.
  const Tensor& gradient() const;
  /// Writable access for optimisers; only for parameters. Not defined if a backward pass that failed had
  /// added to it.
  Tensor& mutable_gradient();
  /// The value, to change in place: every copy of the parameter sees it.
  Tensor& mutable_value() { return value_; }
  /// Makes this a new parameter with another value, of any shape and dtype, and the old name, frozen if the old one
  /// was. Copies made before remain the old parameter, which can be computed with, but a backward pass that reaches it
  /// is an error, and so is a step of an optimiser that holds it.
  void replace_value(Tensor value);
  /// True for such a copy.
  bool is_replaced() const;
  /// Drops the gradient; only for parameters.
  void clear_gradient();
  /// A frozen parameter is a constant to every operation that is recorded from now on, and no optimiser moves it. All
  /// copies are frozen together. Its gradient is dropped when this changes. nn::freeze does it for a whole module.
  void set_frozen(bool frozen);
  bool is_frozen() const;
  /// A parameter's name, "" if it has none. Models name theirs when they are built, so that errors can say where.
  const std::string& name() const;
  void set_name(std::string name);

 private:
  Tensor value_;
  std::shared_ptr<Node> node_;
  int output_ = 0;
};

/// A value without a gradient; f32 or f64.
Variable constant(Tensor value);
/// A value that collects a gradient: a weight, or an input under test; f32 or f64.
Variable parameter(Tensor value, std::string name = "");
/// The same value, cut off from how it was computed.
Variable detach(const Variable& x);

/// A parameter under the name by which errors, files and proofs speak of it.
struct NamedParameter {
  std::string name;
  Variable value;
};
using Parameters = std::vector<NamedParameter>;

/// Runs the tape backwards from a scalar: adds dL/dp to the gradient of every parameter p that led to `loss`, and frees
/// the tape. A second walk over the same tape is an error, unless the first one kept it.
///
/// If a walk throws, its effects are undone: gradients inside the tape are dropped, and a parameter that had no
/// gradient has none again. The exception: a gradient that already held the sum of earlier walks cannot be restored,
/// since no copy is kept. Reading it throws until it is cleared, and so does a walk that reaches it: clear all
/// gradients, and compute the step again. Operations that the walk had visited, including the one that failed, count as
/// walked (only that one, if the tape is kept); those that it had not reached can be part of another loss.
void backward(const Variable& loss);
/// How `backward` treats the tape.
struct BackwardOptions {
  /// The tape stays for another walk, with what its operations saved: so the rows of a Jacobian take one forward pass.
  /// Operations that otherwise overwrite what they saved take memory of their own.
  bool keep = false;
};
/// The same from any y, given dL/dy of its shape.
void backward(const Variable& y, const Tensor& dy, const BackwardOptions& options = {});

/// df/dx at x, of the shape of x, for a function whose value is one number:
///   grad([](const Variable& x) { return sum(x * x); }, x)   // 2 x
/// Parameters that f uses collect their gradients as in `backward`. Errors: f returns something else; NoGradient.
Tensor grad(const std::function<Variable(const Variable&)>& f, const Tensor& x);

/// While an object of this type lives, operations of this thread record nothing and save nothing.
class NoGradient {
 public:
  NoGradient();
  ~NoGradient();
  NoGradient(const NoGradient&) = delete;
  NoGradient& operator=(const NoGradient&) = delete;

 private:
  bool before_;
};
bool gradients_are_recorded();

/// The value, and the operation it came from.
std::ostream& operator<<(std::ostream& out, const Variable& x);

}  // namespace orrery
