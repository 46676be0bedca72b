// Chapter 5. Linear: y = x W^T + b, applied to every position in the same way.
//
// Paper, section 3.3: "While the linear transformations are the same across different positions, they use different
// parameters from layer to layer."
// Shapes: x [..., in], W [out, in], b [out], y [..., out]. W is stored with one row per output, as in PyTorch's files.
// Attention, feed-forward networks and the last layer of a model (`generator`, `lm_head`) multiply by their weights
// only through a Linear. You can replace each of these by a LinearMap of your own, such as one with a low-rank update
// (apps/book/ch7/lora.cpp). The layer around it does not change. (Convolution cannot be replaced: nn/README.md.)
// Read next: nn/layers/feed_forward.h
#pragma once

#include "autograd/ops/fused/linear/linear.h"
#include "nn/init.h"
#include "nn/part.h"

namespace orrery::nn {

struct LinearOptions {
  bool bias = true;
  Init init = Init::xavier;
};

/// What can replace x W^T + b.
struct LinearMap : Module {
  /// x [..., in] to [..., out], or only to the outputs of some `rows` of the weight: cross-attention computes its
  /// queries from one sequence, and its keys and values from another.
  virtual Variable operator()(const Variable& x, RowRange rows) const = 0;
};

struct Linear : Replaceable {
  Variable weight;      // [out, in]
  Variable bias;        // [out], undefined without bias
  Part<LinearMap> map;  // replaces weight and bias, which are then undefined; usually empty

  Linear(i64 in, i64 out, Rng& rng, const LinearOptions& options = {})
      : weight(parameter(initial_weight(options.init, out, in, rng))) {
    if (options.bias) bias = parameter(initial_bias(options.init, out, in, rng));
  }
  /// From given parameters. The bias may be undefined.
  Linear(Variable weight, Variable bias) : weight(std::move(weight)), bias(std::move(bias)) {}
  /// A map of your own:  layer.linear1 = LowRank(std::move(layer.linear1), 4, rng);
  template <std::derived_from<LinearMap> M> Linear(M own) : map(std::move(own)) {}

  /// True for x W^T + b itself. A fused operation may then use weight and bias directly.
  bool is_plain() const { return !map; }
  /// x [..., in] to [..., out], or only to the outputs `rows`.
  Variable operator()(const Variable& x, RowRange rows = {}) const {
    return is_plain() ? linear(x, weight, bias, rows) : map(x, rows);
  }
  /// A copy that shares nothing with this layer.
  Linear clone() const {
    const auto copied = [](const Variable& p) {
      if (!p.defined()) return p;
      Variable copy = parameter(p.value().clone());
      copy.set_frozen(p.is_frozen());
      return copy;
    };
    Linear copy(copied(weight), copied(bias));
    copy.map = map.clone();
    return copy;
  }

  Module* module() override { return is_plain() ? this : map.module(); }
  /// Does nothing if both are plain and have parameters of the same shapes: then only the values differ, and a tied
  /// weight must stay tied.
  void become_clone_of(Replaceable& other) override {
    const Linear& original = dynamic_cast<Linear&>(other);
    const auto same = [](const Variable& a, const Variable& b) {
      return a.defined() == b.defined() && (!a.defined() || a.shape() == b.shape());
    };
    const bool alike = is_plain() && original.is_plain() && same(weight, original.weight) && same(bias, original.bias);
    if (!alike) *this = original.clone();
  }
  void visit(Visitor& v) override {
    if (!is_plain()) return map.visit(v);
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace orrery::nn
