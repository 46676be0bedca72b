// Chapter 2. What every operation needs when it is recorded: checks, edges, and errors that say where they arose.
#include "autograd/apply.h"

#include <algorithm>
#include <sstream>

#include "autograd/observer.h"

namespace orrery::tape {

void explain(std::string_view name, const Error& error, Inputs inputs) {
  constexpr size_t most = 8;  // a list of parts may have thousands
  const Inputs shown = inputs.first(std::min(inputs.size(), most));
  std::ostringstream lines;
  size_t width = 0;
  std::vector<std::string> shapes;
  for (const Variable* input : shown) {
    std::ostringstream shape;
    if (input->defined())
      shape << input->shape();
    else
      shape << "(none)";
    shapes.push_back(shape.str());
    width = std::max(width, shapes.back().size());
  }
  for (size_t i = 0; i < shown.size(); ++i) {
    const auto& node = shown[i]->node();
    lines << "\n  input " << i << ": " << shapes[i];
    if (!shown[i]->defined()) continue;
    lines << std::string(width - shapes[i].size() + 2, ' ') << "from " << (node ? node->origin() : "a constant");
  }
  if (shown.size() < inputs.size()) lines << "\n  and " << inputs.size() - shown.size() << " more inputs";
  throw Error(name, error.rule(), lines.str());
}

void check_inputs(std::string_view name, Inputs inputs) {
  const Variable* first = nullptr;
  for (const Variable* input : inputs) {
    if (!input->defined()) continue;
    check(is_floating(input->dtype()), name, "needs f32 or f64, got ", input->dtype());
    if (!first) first = input;
    check(input->dtype() == first->dtype(), name, "dtypes differ (", first->dtype(), " and ", input->dtype(), ")");
  }
}

bool records(Inputs inputs) {
  if (!gradients_are_recorded()) return false;
  return std::any_of(inputs.begin(), inputs.end(), [](const Variable* input) { return input->wants_gradient(); });
}

void connect(Node& node, Inputs inputs, std::span<const Tensor> outputs) {
  node.inputs.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) lead_to(*inputs[i], node.inputs[i]);
  node.outputs.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    node.outputs[i].shape = outputs[i].shape();
    node.outputs[i].dtype = outputs[i].dtype();
  }
  if (Observer* o = observer()) o->recorded(node);
}

void announce_begin(std::string_view name, Inputs inputs) {
  if (Observer* o = observer()) o->forward_begins(name, inputs);
}

void announce_end(std::string_view name, Inputs inputs, std::span<const Tensor> outputs) {
  if (Observer* o = observer()) o->forward_ended(name, inputs, outputs);
}

}  // namespace orrery::tape
