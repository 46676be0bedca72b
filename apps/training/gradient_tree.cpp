// Chapter 9. The tree of a step's gradients.
#include "apps/training/gradient_tree.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

#include "apps/training/joining.h"
#include "core/tensor_ops.h"

namespace orrery {

Stretch part_of(Stretch whole, i64 i, i64 parts) {
  return {whole.begin + whole.count() * i / parts, whole.begin + whole.count() * (i + 1) / parts};
}

bool are_halves(const Stretch& left, const Stretch& right, i64 count) {
  const i64 half = left.count();
  return std::has_single_bit(static_cast<u64>(half)) && left.begin % (2 * half) == 0 &&
         right.end == std::min(left.begin + 2 * half, count);
}

void add_gradient(Tensor& sum, Tensor& more) {
  if (!sum.defined())
    sum = std::move(more);
  else if (more.defined())
    add_in_place(sum, more);
}

GradientTree::GradientTree(Parameters parameters, i64 count) : parameters_(std::move(parameters)), count_(count) {}
GradientTree::~GradientTree() = default;

void GradientTree::take(i64 micro_batch) {
  GradientNode leaf{{micro_batch, micro_batch + 1}, {}};
  leaf.gradients.reserve(parameters_.size());
  for (NamedParameter& p : parameters_) leaf.gradients.push_back(std::exchange(p.value.mutable_gradient(), {}));
  append(nodes_, std::move(leaf), count_, [](GradientNode& left, GradientNode& right) {
    for (size_t i = 0; i < left.gradients.size(); ++i) add_gradient(left.gradients[i], right.gradients[i]);
  });
}

void GradientTree::take_last(i64 micro_batch, Ranks& ranks, const std::function<void()>& pass) {
  if (ranks.size() == 1 || ranks.adds_fast()) {
    pass();
    return take(micro_batch);
  }
  nodes_.push_back({{micro_batch, micro_batch + 1}, std::vector<Tensor>(parameters_.size())});
  joining_ = std::make_unique<Joining>(parameters_, nodes_, count_, ranks);
  const auto take = [&](size_t i) {  // makes the sums of `take`: the last node stands behind those that it completes
    if (joining_->is_complete(i)) return;
    nodes_.back().gradients[i] = std::exchange(parameters_[i].value.mutable_gradient(), {});
    for (size_t k = nodes_.size() - 1; k >= joining_->own_nodes(); --k)
      add_gradient(nodes_[k - 1].gradients[i], nodes_[k].gradients[i]);
    joining_->complete(i);
  };
  std::exception_ptr failure;  // of the ranks, and not of the operation in whose backward it came up
  CompleteGradients observer(parameters_, take, [&] {
    try {
      if (!failure) joining_->advance(true);
    } catch (...) { failure = std::current_exception(); }
  });
  if (joining_->is_long()) {
    const ObserverScope scope(observer);
    pass();
  } else {
    pass();
  }
  if (failure) std::rethrow_exception(failure);
  for (size_t i = 0; i < parameters_.size(); ++i) take(i);
  joining_->advance(true);  // each rank has begun as much as the others before it does anything else
  nodes_.resize(joining_->own_nodes());
  nodes_.back().end = micro_batch + 1;
}

void GradientTree::finish(Ranks& ranks) {
  if (ranks.size() > 1) {
    if (!joining_) joining_ = std::make_unique<Joining>(parameters_, nodes_, count_, ranks);
    joining_->finish();
  }
  check(nodes_.size() == 1 && nodes_[0].begin == 0 && nodes_[0].end == count_, "gradient tree",
        "some micro-batches were not taken");
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].value.mutable_gradient() = std::move(nodes_[0].gradients[i]);
}

}  // namespace orrery
