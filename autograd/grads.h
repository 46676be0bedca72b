// Chapter 2. Grads: what an operation's backward writes its gradients to.
#pragma once

#include "autograd/node.h"
#include "core/products/gemm.h"

namespace orrery {

/// Lets a new edge lead to x, or nowhere for a constant or a frozen parameter. Error: `mutable_value` was given a
/// tensor of another shape or dtype, so that a gradient of x would not fit its place.
void lead_to(const Variable& x, Edge& edge);

/// A gradient to write or add to.
struct GradientBuffer {
  Tensor& buffer;
  bool is_new;  ///< its contents are undefined: write every element; otherwise add to what is there
  /// buffer = or += op(a) op(b).
  void gemm(const Tensor& a, const Tensor& b, Trans trans = Trans::none) const;
};

/// What an operation's backward writes to: the gradients of its inputs. The engine owns accumulation and
/// un-broadcasting.
class Grads {
 public:
  /// `isolate` keeps each contribution separate until `finish`, so that an observer can look at it. With `keep`, the
  /// node will run backward again.
  explicit Grads(Node& node, bool isolate = false, bool keep = false);
  /// Whether what the operation saved is needed again.
  bool keeps() const { return keep_; }

  /// dL/d(output) number `i` of the operation; not defined when that output led nowhere.
  const Tensor& dy(size_t i) const { return node_.outputs[i].gradient; }
  /// Whether input `i` wants a gradient. If not, computing it would be wasted.
  bool wanted(size_t i) const { return i < node_.inputs.size() && node_.inputs[i].node != nullptr; }
  /// Adds g to dL/d(input i). g may have the broadcast shape; it is summed down to the input's.
  /// A temporary is adopted as it is; what somebody else still holds is copied before it becomes a parameter's
  /// gradient.
  void add(size_t i, Tensor g);
  /// The gradient of input `i` itself, to write or add to; only when `wanted(i)`.
  GradientBuffer into(size_t i);
  /// A tensor of x's shape to write to: x itself if nobody else uses its memory, else a new one. For an operation that
  /// turns its dy, or what it saved, element by element into a gradient of the same shape.
  Tensor reuse(const Tensor& x) const;
  /// The shape of input `i`; only when `wanted(i)`.
  const Shape& shape(size_t i) const { return slot(i).shape; }
  Dtype dtype(size_t i) const { return slot(i).dtype; }

  /// Passes isolated contributions to the observer, which may change them, and adds them.
  void finish();
  /// The isolated contribution to input `i`, as the operation gave it: it may have the broadcast shape.
  const Tensor& isolated(size_t i) const { return contributions_[i]; }

 private:
  OutputSlot& slot(size_t i) const;

  Node& node_;
  const bool isolate_, keep_;
  std::vector<Tensor> contributions_;
};

}  // namespace orrery
