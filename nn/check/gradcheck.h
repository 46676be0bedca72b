// Chapter 5. Checking a layer: its inputs and every parameter that `visit` names.
//
//   nn::to(layer, f64);
//   const auto run = [&](const Variable& x) { Pass pass; return layer(x, pass); };
//   CHECK(nn::gradcheck(layer, run, {randn({2, 3, 8}, rng, f64)}));
#pragma once

#include "autograd/check/gradcheck.h"
#include "nn/module.h"

namespace orrery::nn {

/// Checks f(inputs...) in the inputs and in every parameter of `module`, which must be f64. Also fails if backward
/// reaches a parameter that `visit` does not name, or does not reach one that it names.
inline GradcheckReport gradcheck(Module& module, const VariableFunction& f, const std::vector<Tensor>& inputs,
                                 const GradcheckOptions& options = {}) {
  return orrery::gradcheck(f, inputs, module.parameters(), options);
}

}  // namespace orrery::nn
