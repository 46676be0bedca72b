// Chapter 9. The sample of a layer: noise, saving and loading, and parameters that `visit` does not name.
#include "nn/check/proof.h"

#include <limits>
#include <set>

#include "autograd/check/gradcheck.h"
#include "autograd/leaf.h"
#include "nn/files/files.h"

namespace orrery::nn {
namespace {

// Adds a little noise to every parameter.
void shake(Module& module, Rng& rng) {
  for (NamedParameter& p : module.parameters())
    add_in_place(p.value.mutable_value(), randn(p.value.shape(), rng) * 0.2);
}

// Describes the leaves of y that are neither named by `visit` nor among `inputs`: `to(module, f64)` leaves those in
// f32. "" if there are none.
std::string not_visited(const Variable& y, Module& module, const std::vector<Variable>& inputs) {
  Parameters listed = module.parameters();
  for (const Variable& input : inputs) listed.push_back({"an input", input});
  std::set<const Node*> seen;
  for (const NamedParameter& leaf : listed) seen.insert(leaf.value.node().get());
  std::string text;
  std::vector<const Node*> waiting{y.node().get()};
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<const Leaf*>(node))
      text += (text.empty() ? "" : "; ") + description_of(*leaf, module.parameters());
    for (const Edge& edge : node->inputs) waiting.push_back(edge.node.get());
  }
  return text;
}

// Returns `error`. But if it says "dtypes differ", returns one that says which part `visit` does not name.
Error explained_by_visit(const Error& error, const std::function<std::string()>& not_visited) {
  if (std::string_view(error.what()).find("dtypes differ") == std::string_view::npos) return error;
  std::string which;
  try {
    which = not_visited();
  } catch (const std::exception&) { return error; }
  const std::string what = which.empty() ? "does not reach every tensor: a buffer that it does not name, or a constant "
                                           "that is made in one dtype, is not converted"
                                         : "does not name " + which + ", so conversion does not reach it";
  return Error("visit", what + '\n' + error.what());
}

}  // namespace

void save_and_load(Module& module, const std::string& path) {
  save(module, path);
  for (NamedParameter& p : module.parameters()) fill(p.value.mutable_value(), std::numeric_limits<double>::quiet_NaN());
  for (Module::NamedBuffer& b : module.buffers())
    if (!b.derived) fill(b.value, is_floating(b.value.dtype()) ? std::numeric_limits<double>::quiet_NaN() : -1);
  load(module, path);
}

Sample sample_of_module(std::string name, std::string variant, std::vector<Shape> shapes,
                        const std::function<RunnableModule(Rng& rng)>& make, const SampleNotes& notes) {
  auto build = [shapes = std::move(shapes), make, notes](Dtype dtype, u64 seed) {
    Rng rng(17 * seed);
    const auto [module, run] = make(rng);
    shake(*module, rng);
    to(*module, dtype);
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes) inputs.push_back(randn(shape, rng, f64).to(dtype));
    const auto output = [run = run, seed](const Inputs& x) { return run(x, 5 * seed); };
    Checkable f = checkable(output, inputs, module->parameters(), notes.zeros);
    f.padding = notes.padding;
    // A parameter that `visit` does not name keeps its dtype. The error must name it.
    const auto explained = [inputs, make, seed](const Error& error) {
      Rng again(17 * seed);
      const RunnableModule unconverted = make(again);
      Inputs x;
      for (const Tensor& input : inputs) x.push_back(constant(input.to(f32)));
      return explained_by_visit(error,
                                [&] { return not_visited(unconverted.run(x, 5 * seed), *unconverted.module, x); });
    };
    f.output = [plain = f.output, explained] {
      try {
        return plain();
      } catch (const Error& error) { throw explained(error); }
    };
    if (module->parameter_count() > 0 || !module->buffers().empty())
      f.through_file = [module = module](const std::string& path) { save_and_load(*module, path); };
    return f;
  };
  return {std::move(name), std::move(variant), std::move(build), notes.options};
}

}  // namespace orrery::nn
