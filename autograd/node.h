// Chapter 2. Node: one recorded operation, the edges to what it was computed from, and the gradients that wait for it.
//
// The tape is a graph of nodes. Each node has a number; a node's inputs were made before it and have smaller numbers,
// so that visiting nodes newest first meets each one after everything that was computed from it.
// Read next: autograd/engine.cpp
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/variable.h"
#include "core/products/gemm.h"

namespace orrery {

class Grads;
struct OutputSlot;

/// Where an input came from: output `output` of `node`, or nowhere (a constant).
struct Edge {
  /// The slot of that output; only if there is a node.
  OutputSlot& slot() const;

  std::shared_ptr<Node> node;
  int output = 0;
  u32 layout = 0;  // for a parameter: how many `earlier_layouts` it had when the edge was made
};

/// What a node knows of one of its outputs: enough to allocate its gradient, and the gradient once it arrives.
struct OutputSlot {
  Shape shape;
  Dtype dtype = f32;
  Tensor gradient;  // dL/d(output); not defined until somebody adds to it
};

/// One operation on the tape.
class Node {
 public:
  explicit Node(std::string_view name);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Adds this operation's part of dL/d(input) for each input to `dx`, from the gradients in `outputs`.
  virtual void backward(Grads& dx) = 0;
  /// Drops what was saved for backward.
  virtual void release() = 0;
  /// After its backward, or after a walk that failed here: drops what was saved and the gradients of the outputs.
  void use_up();
  /// The name of this value in error messages: "gelu", or "parameter encoder.norm.weight".
  virtual std::string origin() const { return std::string(name); }

  const std::string_view name;
  const u64 number;  // creation number: larger is newer
  std::vector<Edge> inputs;
  std::vector<OutputSlot> outputs;
  bool walked = false;  // used up
  bool queued = false;  // waits for its turn in a running backward pass
  bool frozen = false;  // a parameter to which no new edge leads (Variable::set_frozen)

 private:
  std::shared_ptr<Node> next_dying_;  // set only while nodes are freed
};

/// The node of a parameter. It has no inputs, and keeps its gradient until an optimiser has used it.
class Leaf final : public Node {
 public:
  explicit Leaf(std::string label);
  void backward(Grads&) override {}
  void release() override {}
  std::string origin() const override;
  /// Error of `operation` if the gradient is lost.
  void check_gradient(std::string_view operation) const;

  std::string label;
  /// Shape and dtype before each `replace_value` that changed them; tapes recorded until then refer to them.
  struct Layout {
    Shape shape;
    Dtype dtype;
  };
  std::vector<Layout> earlier_layouts;
  /// A failed walk changed the sum of earlier walks. The sum cannot be restored, so the gradient was dropped.
  bool gradient_lost = false;
  u64 replacements = 0;  ///< how often `replace_value` gave other memory
};

/// The edge to x, none for a constant or a frozen parameter. Error: x is a copy of a parameter whose shape or dtype has
/// been replaced, or `mutable_value` was given another tensor, so that a gradient of x would not fit its place.
Edge edge_to(const Variable& x);

/// Where the elements of x begin in memory; null if x is not defined.
const void* address_of(const Tensor& x);

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
  /// `isolate` keeps each contribution separate until `finish`, so that an observer can look at it.
  explicit Grads(Node& node, bool isolate = false);

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
  void sum_down(size_t i, Tensor& g) const;
  void accumulate(size_t i, const Tensor& g);

  Node& node_;
  bool isolate_;
  std::vector<Tensor> contributions_;
};

}  // namespace orrery
