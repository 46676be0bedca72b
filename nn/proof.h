// Chapter 5. The whole proof of a layer in one line, of your own too.
//
//   Proof proof = nn::prove("FeedForward", [](Rng& rng) { return FeedForward(4, 7, rng); },
//                           [](const FeedForward& layer, const Variable& x) { Pass pass; return layer(x, pass); },
//                           {{2, 3, 4}});
// The layer is built from fixed random numbers and shaken, so that no bias is 0 and no norm's weight is 1, converted to
// the dtype in question, and checked in its inputs and in every parameter that `visit` names. Every part of
// autograd/proof.h is proven, and that what nn::save writes nn::load gives back.
// Read next: apps/examples/ch5_my_layer.cpp
#pragma once

#include <memory>

#include "autograd/proof.h"
#include "nn/module.h"

namespace orrery::nn {

using Inputs = std::vector<Variable>;

/// What else a sample may need to say.
struct SampleNotes {
  std::vector<DeclaredZero> zeros{};
  GradcheckOptions options{};
};

/// Adds a little noise to every parameter.
void shake(Module& module, Rng& rng);

/// nn::save to `path`, every parameter lost, nn::load: what a proof asks of a layer (`Checkable::through_file`).
void save_and_load(Module& module, const std::string& path);

/// The sample of run(module, inputs), where make(rng) builds the module and inputs of the given shapes are drawn from
/// N(0, 1). `run` takes the inputs as one std::vector<Variable>, or as one or two Variables.
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
    const std::function<Variable(const Inputs&)> output = [module, run](const Inputs& x) -> Variable {
      if constexpr (std::is_invocable_v<Run, decltype(*module), const Inputs&>)
        return run(*module, x);
      else if constexpr (std::is_invocable_v<Run, decltype(*module), Variable, Variable>)
        return run(*module, x.at(0), x.at(1));
      else
        return run(*module, x.at(0));
    };
    Checkable f = checkable(output, inputs, module->parameters(), notes.zeros);
    if (module->parameter_count() > 0)
      f.through_file = [module](const std::string& path) { save_and_load(*module, path); };
    return f;
  };
  return {std::move(name), std::move(variant), build, notes.options};
}

/// Proves run(module, inputs), as above.
template <class Make, class Run>
Proof prove(std::string name, Make make, Run run, std::vector<Shape> shapes, SampleNotes notes = {}) {
  return orrery::prove(module_sample(std::move(name), "", std::move(shapes), make, run, std::move(notes)));
}

}  // namespace orrery::nn
