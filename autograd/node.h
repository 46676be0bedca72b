// Chapter 2. Node: one recorded operation, the edges to what it was computed from, and the gradients that wait for it.
//
// The tape is a graph of nodes. A node's inputs were made before it and have smaller numbers, so that newest first each
// one is met after all that was computed from it. A parameter's node is a Leaf; backward writes to Grads.
// Read next: autograd/engine.cpp
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "autograd/few.h"
#include "autograd/variable.h"

namespace orrery {

class Grads;
struct OutputSlot;

/// Where an input came from: output `output` of `node`, or nowhere (a constant).
struct Edge {
  /// The slot of that output; only if there is a node.
  OutputSlot& slot() const;

  std::shared_ptr<Node> node;
  int output = 0;
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
  explicit Node(std::string_view name, bool is_leaf = false);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Adds this operation's part of dL/d(input) for each input to `dx`, from the gradients in `outputs`.
  virtual void backward(Grads& dx) = 0;
  /// Drops what was saved for backward.
  virtual void release() = 0;
  /// Drops the gradients of the outputs, once they were passed on.
  void drop_gradients();
  /// After its backward, or after a walk that failed here: drops these and what was saved.
  void use_up();
  /// The name of this value in error messages: "gelu", or "parameter encoder.norm.weight".
  virtual std::string origin() const { return std::string(name); }

  const std::string_view name;
  const u64 number;  // creation number: larger is newer
  Few<Edge, 3> inputs;
  Few<OutputSlot, 1> outputs;
  const bool is_leaf;   // the node of a parameter: a Leaf
  bool walked = false;  // used up
  bool queued = false;  // waits for its turn in a running backward pass
  bool frozen = false;  // a parameter to which no new edge leads (Variable::set_frozen)

 private:
  std::shared_ptr<Node> next_dying_;  // set only while nodes are freed
};

inline OutputSlot& Edge::slot() const { return node->outputs[static_cast<size_t>(output)]; }

}  // namespace orrery
