// Chapter 5. The whole proof of a layer in one line, also of a layer of your own.
//
//   Proof proof = nn::prove("FeedForward", [](Rng& rng) { return FeedForward(4, 7, rng); },
//                           [](const FeedForward& layer, const Variable& x, Pass& pass) { return layer(x, pass); },
//                           {{2, 3, 4}});
// The layer is built from fixed random numbers. A little noise is added, so that no bias is 0 and no weight of a norm
// is 1. Then the layer is converted to the dtype in question and checked in its inputs and in every parameter that
// `visit` names and that is not frozen. The proof has all parts that autograd/check/proof.h lists. Its part `file`
// checks that nn::load reads back what nn::save wrote.
#pragma once

#include <functional>
#include <memory>

#include "autograd/check/proof.h"
#include "nn/module.h"
#include "nn/pass.h"

namespace orrery::nn {

using Inputs = std::vector<Variable>;

/// Optional settings of a sample.
struct SampleNotes {
  std::vector<DeclaredZero> zeros{};
  GradcheckOptions options{};
  Padding padding{};
};

/// Adds a little noise to every parameter.
void shake(Module& module, Rng& rng);

/// Saves the module to `path`, overwrites every parameter and every buffer that is not derived (floating ones with
/// NaN), and loads it again (`Checkable::through_file`).
void save_and_load(Module& module, const std::string& path);

/// Describes the leaves of y that are neither named by `visit` nor among `inputs`: `to(module, f64)` leaves those in
/// f32. "" if there are none.
std::string not_visited(const Variable& y, Module& module, const std::vector<Variable>& inputs);

/// Returns `error`. But if it says "dtypes differ", returns one that says which part `visit` does not name.
Error explained_by_visit(const Error& error, const std::function<std::string()>& not_visited);

/// run(module, inputs...) as a function of the inputs only. If `run` takes a Pass& after them, dropout is on.
template <class M, class Run> struct BoundRun {
  std::shared_ptr<M> module;
  Run run;
  u64 seed;  ///< of the Pass

  template <class... X>
  requires(std::is_invocable_v<const Run&, M&, const X&...> ||
           std::is_invocable_v<const Run&, M&, const X&..., Pass&>) Variable
  operator()(const X&... x) const {
    if constexpr (std::is_invocable_v<const Run&, M&, const X&..., Pass&>) {
      Pass pass = Pass::training(seed, 1);
      return run(*module, x..., pass);
    } else {
      return run(*module, x...);
    }
  }
};

/// The sample of run(module, inputs), where make(rng) builds the module, and inputs of the given shapes are drawn from
/// N(0, 1). `run` takes the inputs as one std::vector<Variable>, or as one, two or three Variables. A Pass& with
/// dropout on may follow. Module, inputs and Pass are determined by the seed of the proof.
template <class Make, class Run>
Sample module_sample(std::string name, std::string variant, std::vector<Shape> shapes, Make make, Run run,
                     SampleNotes notes = {}) {
  const auto build = [=](Dtype dtype, u64 seed) {
    Rng rng(17 * seed);
    const auto module = std::make_shared<decltype(make(rng))>(make(rng));
    shake(*module, rng);
    to(*module, dtype);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(randn(shape, rng, f64).to(dtype));
    const BoundRun<decltype(make(rng)), Run> output{module, run, 5 * seed};
    Checkable f = checkable(output, inputs, module->parameters(), notes.zeros);
    f.padding = notes.padding;
    // A parameter that `visit` does not name keeps its dtype. The error must name it.
    const auto explained = [=](const Error& error) {
      Rng again(17 * seed);
      auto unconverted = std::make_shared<decltype(make(rng))>(make(again));
      std::vector<Variable> x;
      for (const Tensor& input : inputs) x.push_back(constant(input.to(f32)));
      const BoundRun<decltype(make(rng)), Run> run_again{unconverted, run, 5 * seed};
      return explained_by_visit(error, [&] { return not_visited(call_with(run_again, x), *unconverted, x); });
    };
    f.output = [plain = f.output, explained] {
      try {
        return plain();
      } catch (const Error& error) { throw explained(error); }
    };
    if (module->parameter_count() > 0 || !module->buffers().empty())
      f.through_file = [module](const std::string& path) { save_and_load(*module, path); };
    return f;
  };
  return {std::move(name), std::move(variant), build, notes.options};
}

/// Proves run(module, inputs), with arguments as above.
template <class Make, class Run>
Proof prove(std::string name, Make make, Run run, std::vector<Shape> shapes, SampleNotes notes = {},
            const ProofOptions& options = {}) {
  return orrery::prove(module_sample(std::move(name), "", std::move(shapes), make, run, std::move(notes)), options);
}

}  // namespace orrery::nn
