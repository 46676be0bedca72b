// Chapter 7. Rows of the table of proofs: what every sample of a layer has in common.
//
// A module is built from fixed random numbers and shaken, so that no bias is 0 and no norm's weight is 1, converted to
// the dtype in question, and checked in its inputs and in every parameter that `visit` names.
// Read next: nn/samples.cpp
#pragma once

#include "core/tensor_ops.h"
#include "nn/module.h"
#include "nn/samples.h"

namespace orrery::nn {

using Inputs = std::vector<Variable>;

/// What else a sample may need to say.
struct SampleNotes {
  std::vector<DeclaredZero> zeros{};
  GradcheckOptions options{};
};

/// Adds a little noise to every parameter.
inline void shake(Module& module, Rng& rng) {
  for (NamedParameter& p : module.parameters()) {
    add_in_place(p.value.mutable_value(), randn(p.value.shape(), rng) * 0.2);
  }
}

/// The sample of run(module, inputs), where make(rng) builds the module and inputs of the given shapes are drawn from
/// N(0, 1).
template <class Make, class Run>
Sample module_sample(std::string name, std::string variant, std::vector<Shape> shapes, Make make, Run run,
                     SampleNotes notes = {}) {
  const auto build = [=](Dtype dtype) {
    Rng rng(17);
    const auto module = std::make_shared<decltype(make(rng))>(make(rng));
    shake(*module, rng);
    to(*module, dtype);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(randn(shape, rng, f64).to(dtype));
    const std::function<Variable(const Inputs&)> output = [module, run](const Inputs& x) { return run(*module, x); };
    return checkable(output, inputs, module->parameters(), notes.zeros);
  };
  return {std::move(name), std::move(variant), build, notes.options};
}

/// The samples of stacks and of the whole Transformer (nn/model_samples.cpp).
std::vector<Sample> model_samples();

}  // namespace orrery::nn
