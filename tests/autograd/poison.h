// Chapter 3. An observer that makes one operation of a pass give NaN or infinity.
#pragma once

#include <string>

#include "autograd/observer.h"
#include "core/tensor.h"

namespace orrery {

/// Writes `value` into one output of operation number `target`, and learns what the operations are called.
struct Poison : Observer {
  i64 target = -1, forward = 0, backward = 0;
  bool in_backward = false;
  double value = 0;
  std::string name;

  void forward_ended(std::string_view operation, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override {
    if (forward++ != target || in_backward) return;
    if (outputs[0].count() == 0) return;
    if (outputs[0].shares_memory_with(inputs[0]->value())) return;  // a view makes no numbers
    Tensor y = outputs[0];
    put(y);
    name = operation;
  }
  bool changes_contributions() const override { return in_backward; }
  void contribution(const Node& node, size_t, Tensor& g) override {
    if (backward != target || !in_backward || !name.empty() || g.count() == 0) return;
    put(g);
    name = node.name;
  }
  void backward_ended(const Node&) override { ++backward; }

 private:
  void put(Tensor& x) const {
    if (x.dtype() == f64)
      x.write<double>()[x.count() / 2] = value;
    else
      x.write<float>()[x.count() / 2] = static_cast<float>(value);
  }
};

}  // namespace orrery
