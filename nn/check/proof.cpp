// Chapter 9. The proof of a layer: noise, saving and loading, and parameters that `visit` does not name.
#include "nn/check/proof.h"

#include <limits>
#include <set>

#include "autograd/check/gradcheck.h"
#include "autograd/leaf.h"
#include "nn/files/files.h"

namespace orrery::nn {

void shake(Module& module, Rng& rng) {
  for (NamedParameter& p : module.parameters()) {
    add_in_place(p.value.mutable_value(), randn(p.value.shape(), rng) * 0.2);
  }
}

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

void save_and_load(Module& module, const std::string& path) {
  save(module, path);
  for (NamedParameter& p : module.parameters()) fill(p.value.mutable_value(), std::numeric_limits<double>::quiet_NaN());
  for (Module::NamedBuffer& b : module.buffers())
    if (!b.derived) fill(b.value, is_floating(b.value.dtype()) ? std::numeric_limits<double>::quiet_NaN() : -1);
  load(module, path);
}

}  // namespace orrery::nn
