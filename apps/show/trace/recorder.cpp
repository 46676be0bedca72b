// Chapter 9. The recorder: each operation as a step with copies of its values.
#include "apps/show/trace/recorder.h"

#include "autograd/leaf.h"

namespace orrery {
namespace {

const Leaf* leaf_of(const Node* node) { return dynamic_cast<const Leaf*>(node); }

// "encoder.norm1.weight" is a parameter of the module "encoder.norm1".
std::string module_of_parameter(const std::string& name) { return name.substr(0, name.rfind('.')); }

TracedValue traced(const Tensor& value, size_t index) {
  TracedValue result;
  result.value = value.clone();
  result.index = index;
  return result;
}

}  // namespace

void StepRecorder::forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                                 std::span<const Tensor> outputs) {
  TracedStep step;
  step.number = step.forward = static_cast<i64>(steps_.size()) + 1;
  step.operation = name;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Variable& input = *inputs[i];
    if (!input.defined()) continue;
    TracedValue value = traced(input.value(), i);
    if (const Leaf* leaf = leaf_of(input.node().get())) {
      value.parameter = leaf->label;
      if (step.module.empty()) step.module = module_of_parameter(leaf->label);
    } else if (input.node()) {
      value.steps = {step_of_node_.at(input.node()->number)};
      value.output = static_cast<size_t>(input.output());
    }
    step.inputs.push_back(std::move(value));
  }
  if (step.module.empty() && !step.inputs.empty() && !step.inputs[0].steps.empty())
    step.module = steps_[static_cast<size_t>(step.inputs[0].steps[0]) - 1].module;
  for (size_t i = 0; i < outputs.size(); ++i) step.outputs.push_back(traced(outputs[i], i));
  steps_.push_back(std::move(step));
}

void StepRecorder::recorded(const Node& node) { step_of_node_[node.number] = steps_.back().number; }

const TracedStep& StepRecorder::forward_step(const Node& node) const {
  return steps_[static_cast<size_t>(step_of_node_.at(node.number)) - 1];
}

void StepRecorder::backward_begins(const Node& node) {
  const TracedStep& forward = forward_step(node);
  TracedStep step;
  step.number = static_cast<i64>(steps_.size()) + 1;
  step.forward = forward.number;
  step.operation = forward.operation;
  step.module = forward.module;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Tensor& dy = node.outputs[i].gradient;
    if (!dy.defined()) continue;
    step.inputs.push_back(traced(dy, i));
    step.inputs.back().steps = added_by_[{forward.number, i}];
  }
  steps_.push_back(std::move(step));
}

void StepRecorder::contribution(const Node& node, size_t input, Tensor& gradient) {
  TracedStep& step = steps_.back();
  const Edge& edge = node.inputs[input];
  TracedValue value = traced(gradient, input);
  if (const Leaf* leaf = leaf_of(edge.node.get())) {
    value.parameter = leaf->label;
  } else {
    const i64 producer = step_of_node_.at(edge.node->number);
    value.steps = {producer};
    added_by_[{producer, static_cast<size_t>(edge.output)}].push_back(step.number);
  }
  step.outputs.push_back(std::move(value));
}

}  // namespace orrery
