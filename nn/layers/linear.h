// Chapter 5. Linear: y = x W^T + b, applied to every position in the same way.
//
// Paper, section 3.3: "While the linear transformations are the same across different positions, they use different
// parameters from layer to layer."
// Shapes: x [..., in], W [out, in], b [out], y [..., out]. W is stored with one row per output, as in PyTorch's files.
// Every weight of a product in our layers is reached through a Linear, and every Linear can be replaced by a LinearMap
// of your own, such as one with a low-rank update (apps/book/ch7/lora.cpp): the layer around it does not change.
// Read next: nn/layers/feed_forward.h
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/part.h"

namespace orrery::nn {

struct LinearOptions {
  bool bias = true;
  Init init = Init::xavier;
};

/// What may stand in the place of x W^T + b.
struct LinearMap : Module {
  /// x [..., in] to [..., out]; or to the columns `rows` of it alone, which attention asks for where queries come from
  /// one sequence and keys and values from another: `rows` are rows of a weight, for `linear` (autograd/ops.h).
  virtual Variable operator()(const Variable& x, RowRange rows) const = 0;
};

struct Linear : Replaceable {
  Variable weight;      // [out, in]
  Variable bias;        // [out], undefined without bias
  Part<LinearMap> map;  // what stands in their place, if anything does; they are not defined then

  Linear(i64 in, i64 out, Rng& rng, const LinearOptions& options = {})
      : weight(parameter(initial_weight(options.init, out, in, rng))) {
    if (options.bias) bias = parameter(initial_bias(options.init, out, in, rng));
  }
  /// One with given parameters; the bias may be undefined.
  Linear(Variable weight, Variable bias) : weight(std::move(weight)), bias(std::move(bias)) {}
  /// A map of your own:  layer.linear1 = LowRank(std::move(layer.linear1), 4, rng);
  template <std::derived_from<LinearMap> M>
  Linear(M own) : map(std::move(own)) {}

  /// How many numbers such a layer learns; in double, where no size overflows.
  using Module::parameter_count;
  static double parameter_count(i64 in, i64 out, const LinearOptions& options) {
    return static_cast<double>(out) * (static_cast<double>(in) + (options.bias ? 1 : 0));
  }
  /// True for x W^T + b itself, whose weight and bias an operation may use together with what follows.
  bool is_plain() const { return !map; }
  /// x [..., in] to [..., out], or to the outputs `rows` alone.
  Variable operator()(const Variable& x, RowRange rows = {}) const {
    return is_plain() ? linear(x, weight, bias, rows) : map(x, rows);
  }
  /// A layer of its own with the same values.
  Linear clone() const {
    const auto copied = [](const Variable& p) { return p.defined() ? parameter(p.value().clone()) : Variable(); };
    Linear copy(copied(weight), copied(bias));
    copy.map = map.clone();
    return copy;
  }

  Module* module() override { return is_plain() ? this : map.module(); }
  /// Two plain ones differ in values alone, and a weight may be tied to another module's.
  void become_clone_of(Replaceable& other) override {
    const Linear& original = dynamic_cast<Linear&>(other);
    if (!is_plain() || !original.is_plain()) *this = original.clone();
  }
  void visit(Visitor& v) override {
    if (!is_plain()) return map.visit(v);
    v.weight("weight", weight);
    v("bias", bias);
  }
};

}  // namespace orrery::nn
