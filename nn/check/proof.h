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

/// Saves the module to `path`, overwrites every parameter and every buffer that is not derived (floating ones with
/// NaN), and loads it again (`Checkable::through_file`).
void save_and_load(Module& module, const std::string& path);

/// run(module, inputs...) as a function of the inputs only. If `run` takes a Pass& after them, dropout is on.
template <class M, class Run> struct BoundRun {
  M& module;
  const Run& run;
  u64 seed;  ///< of the Pass

  template <class... X>
  requires(std::is_invocable_v<const Run&, M&, const X&...> ||
           std::is_invocable_v<const Run&, M&, const X&..., Pass&>) Variable
  operator()(const X&... x) const {
    if constexpr (std::is_invocable_v<const Run&, M&, const X&..., Pass&>) {
      Pass pass = Pass::training(seed, 1);
      return run(module, x..., pass);
    } else {
      return run(module, x...);
    }
  }
};

/// A module of any type, and how it runs on inputs, with the dropout masks of a seed.
struct RunnableModule {
  std::shared_ptr<Module> module;
  std::function<Variable(const Inputs& inputs, u64 seed)> run;
};
/// What `module_sample` (below) is made of. It is no template: it is not compiled again for each module.
Sample sample_of_module(std::string name, std::string variant, std::vector<Shape> shapes,
                        const std::function<RunnableModule(Rng& rng)>& make, const SampleNotes& notes);

/// The sample of run(module, inputs), where make(rng) builds the module, and inputs of the given shapes are drawn from
/// N(0, 1). `run` takes the inputs as one std::vector<Variable>, or as one, two or three Variables. A Pass& with
/// dropout on may follow. Module, inputs and Pass are determined by the seed of the proof.
template <class Make, class Run>
Sample module_sample(std::string name, std::string variant, std::vector<Shape> shapes, Make make, Run run,
                     SampleNotes notes = {}) {
  using M = decltype(make(std::declval<Rng&>()));
  const auto runnable = [make, run](Rng& rng) -> RunnableModule {
    const auto module = std::make_shared<M>(make(rng));
    return {module, [module, run](const Inputs& x, u64 seed) {
              return call_with(BoundRun<M, Run>{*module, run, seed}, x);
            }};
  };
  return sample_of_module(std::move(name), std::move(variant), std::move(shapes), runnable, notes);
}

/// Proves run(module, inputs), with arguments as above.
template <class Make, class Run>
Proof prove(std::string name, Make make, Run run, std::vector<Shape> shapes, SampleNotes notes = {},
            const ProofOptions& options = {}) {
  return orrery::prove(module_sample(std::move(name), "", std::move(shapes), make, run, std::move(notes)), options);
}

}  // namespace orrery::nn
