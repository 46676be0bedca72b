// Chapter 9. The gradient of a step: the sum over its micro-batches, in an order that does not depend on who computes.
//
// Sums of floating-point numbers depend on their order: (a + b) + c is not a + (b + c). So the order is fixed: a binary
// tree over the micro-batches 0 to M - 1. A node of level l has those from k 2^l to (k + 1) 2^l - 1, without those that
// do not exist, and is the sum of its two halves. With five of them:
//   ((g0 + g1) + (g2 + g3)) + g4
// Each rank computes neighbouring micro-batches, and adds those that are whole nodes of the tree; the ranks exchange
// these nodes, and go on with the same tree. So the bits are equal for any number of ranks. Each rank adds one part of
// the numbers, which all others send to it, and sends the sum to all (reduce-scatter and all-gather). Of each level of
// the tree, at most two nodes of a rank are in memory.
#pragma once

#include <utility>
#include <vector>

#include "apps/training/ranks.h"
#include "autograd/variable.h"

namespace orrery {

/// Numbers, or micro-batches, from `begin` to `end` - 1.
struct Stretch {
  i64 begin = 0, end = 0;
  i64 count() const { return end - begin; }
};
/// Part `i` of so many parts, whose sizes differ by one at most.
Stretch part_of(Stretch whole, i64 i, i64 parts);

/// The sum of the gradients of a step, made once.
class GradientTree {
 public:
  /// For the gradients of `parameters` in `count` micro-batches, of which rank r has `part_of({0, count}, r, ranks)`.
  GradientTree(Parameters parameters, i64 count) : parameters_(std::move(parameters)), count_(count) {}
  /// Takes the gradients out of the parameters: those of this micro-batch. Call it in the order of the micro-batches.
  void take(i64 micro_batch);
  /// Gives each parameter the sum over the micro-batches of all ranks as its gradient. Errors: some were not taken; on
  /// several ranks, gradients of different dtypes.
  void finish(Ranks& ranks);

 private:
  struct Node : Stretch {
    std::vector<Tensor> gradients;  // of each parameter; not defined if nothing reached it
  };
  // Gradients as one row of numbers, small ones first, without those that no rank has: of parameter parameters[i] from
  // places[i] to places[i + 1].
  struct Row {
    std::vector<size_t> parameters{};
    std::vector<i64> places{0};
    i64 large = 0;  // numbers of a gradient that is not small
    Dtype dtype = f32;
    i64 count() const { return places.back(); }
  };
  Row row(Ranks& ranks) const;
  void pack(const Node& node, const Row& row, Stretch part, Tensor& to, i64 at) const;
  void unpack(const Tensor& from, const Row& row, Stretch part);
  Tensor in_place(const Row& row, Stretch part) const;
  void join(Ranks& ranks, const Row& row);
  void join_fast(Ranks& ranks, const Row& row);

  Parameters parameters_;
  i64 count_;
  std::vector<Node> nodes_;  // from left to right; the two halves of a node have become one
};

}  // namespace orrery
