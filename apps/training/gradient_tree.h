// Chapter 9. The gradient of a step: the sum over its micro-batches, in an order that does not depend on who computes.
//
// Sums of floating-point numbers depend on their order: (a + b) + c is not a + (b + c). So the order is fixed: a binary
// tree over the micro-batches 0 to M - 1. A node of level l has those from k 2^l to (k + 1) 2^l - 1, without those that
// do not exist, and is the sum of its two halves. With five of them:
//   ((g0 + g1) + (g2 + g3)) + g4
// Each rank computes neighbouring micro-batches, and adds those that are whole nodes of the tree; the ranks exchange
// these nodes, and go on with the same tree. So the bits are equal for any number of ranks. Each rank adds one part of
// the numbers, which all others send to it, and sends the sum to all (reduce-scatter and all-gather). That begins while
// backward goes on in the last micro-batch, with the gradients that are complete (Li et al. 2020, "PyTorch
// Distributed", section 3.2.3). Of each level of the tree, at most two nodes of a rank are in memory.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/training/ranks.h"
#include "autograd/node.h"
#include "autograd/observer.h"

namespace orrery {

/// Numbers, or micro-batches, from `begin` to `end` - 1.
struct Stretch {
  i64 begin = 0, end = 0;
  i64 count() const { return end - begin; }
};
/// Part `i` of so many parts, whose sizes differ by one at most.
Stretch part_of(Stretch whole, i64 i, i64 parts);

/// Whether two neighbours are the halves of a node of the tree over `count` leaves.
bool are_halves(const Stretch& left, const Stretch& right, i64 count);
/// Appends a node to those on its left. Wherever two are halves, the left one becomes their sum.
template <class Node, class Add> void append(std::vector<Node>& nodes, Node next, i64 count, const Add& add_to_left) {
  nodes.push_back(std::move(next));
  while (nodes.size() > 1 && are_halves(nodes[nodes.size() - 2], nodes.back(), count)) {
    Node& left = nodes[nodes.size() - 2];
    add_to_left(left, nodes.back());
    left.end = nodes.back().end;
    nodes.pop_back();
  }
}

/// A node of the tree, and the sum of each parameter's gradients; not defined if nothing reached it.
struct GradientNode : Stretch {
  std::vector<Tensor> gradients;
};
/// Adds a gradient to another of the same parameter; one that is not there adds nothing.
void add_gradient(Tensor& sum, Tensor& more);
class Joining;  // of what the ranks have (joining.h)

/// Calls `complete(i)` when backward has added all to the gradient of parameter i, since all nodes that read it have
/// run, and `idle()` after each node. It is in force in forward, too. Error: a parameter is read again after that, as
/// by an operation that records others in its backward.
class CompleteGradients final : public ForwardingObserver {
 public:
  CompleteGradients(const Parameters& parameters, std::function<void(size_t)> complete, std::function<void()> idle)
      : complete_(std::move(complete)), idle_(std::move(idle)) {
    for (size_t i = 0; i < parameters.size(); ++i) readers_[parameters[i].value.node().get()] = {i};
  }
  void recorded(const Node& node) override {
    ForwardingObserver::recorded(node);
    for_parameters(node, [&](Readers& readers) {
      check(!readers.all_ran, "gradient tree", node.name, " reads a parameter whose gradient was complete: ",
            "ranks cannot share a loss that records operations in backward");
      ++readers.count;
    });
  }
  void backward_ended(const Node& node) override {
    ForwardingObserver::backward_ended(node);
    for_parameters(node, [&](Readers& readers) {
      readers.all_ran = --readers.count == 0;
      if (readers.all_ran) complete_(readers.of);
    });
    idle_();
  }

 private:
  struct Readers {
    size_t of = 0;
    i64 count = 0;
    bool all_ran = false;
  };
  template <class F> void for_parameters(const Node& node, const F& f) {
    for (const Edge& input : node.inputs)
      if (const auto at = readers_.find(input.node.get()); at != readers_.end()) f(at->second);
  }
  std::unordered_map<const Node*, Readers> readers_;  // by the parameter's node
  std::function<void(size_t)> complete_;
  std::function<void()> idle_;
};

/// The sum of the gradients of a step, made once.
class GradientTree {
 public:
  /// For the gradients of `parameters` in `count` micro-batches, of which rank r has `part_of({0, count}, r, ranks)`.
  GradientTree(Parameters parameters, i64 count);
  ~GradientTree();
  GradientTree(const GradientTree&) = delete;
  GradientTree& operator=(const GradientTree&) = delete;
  /// Takes the gradients out of the parameters: those of this micro-batch. Call it in the order of the micro-batches.
  void take(i64 micro_batch);
  /// Calls `pass`, the forward and backward of this rank's last micro-batch, and takes each gradient as soon as it is
  /// complete, so that ranks can join it while backward goes on. Errors: those of `CompleteGradients`.
  void take_last(i64 micro_batch, Ranks& ranks, const std::function<void()>& pass);
  /// Gives each parameter the sum over the micro-batches of all ranks as its gradient. Errors: some were not taken; on
  /// several ranks, parameters of different dtypes.
  void finish(Ranks& ranks);

 private:
  Parameters parameters_;
  i64 count_;
  std::vector<GradientNode> nodes_;  // from left to right; the two halves of a node have become one
  std::unique_ptr<Joining> joining_;
};

}  // namespace orrery
