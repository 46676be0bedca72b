// Chapter 9. The recorder of a pass; and lines of our own sources, found by their text.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "apps/program/shipped_files.h"
#include "apps/show/trace/model_pass.h"
#include "autograd/leaf.h"
#include "core/error.h"

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

namespace {

std::vector<std::string> source_lines(const std::string& path) {
  std::istringstream text(shipped_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

bool holds(const std::string& line, std::string_view text) { return line.find(text) != line.npos; }

// From line `begin` to where its brackets are closed and a statement or a body ends.
std::vector<std::string> code_from(const std::vector<std::string>& lines, size_t begin) {
  std::vector<std::string> code;
  const size_t indent = lines[begin].find_first_not_of(' ');
  int depth = 0;
  for (size_t i = begin; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    code.push_back(line.substr(std::min({indent, line.find_first_not_of(' '), line.size()})));
    for (const char c : line.substr(0, line.find("//"))) {
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') --depth;
    }
    const std::string ended = line.substr(0, line.find("  //"));
    if (depth <= 0 && (ended.ends_with(';') || ended.ends_with('}'))) break;
  }
  return code;
}

// Files of operations, in the order of their names.
std::vector<std::string> operation_files() {
  const std::filesystem::path root = shipped_path("");
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "autograd/ops")) {
    const std::string extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp")
      paths.push_back(entry.path().lexically_relative(root).generic_string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

SourceLine find_source_line(const std::string& path, std::string_view after, std::string_view text) {
  const std::vector<std::string> lines = source_lines(path);
  const auto start =
      std::find_if(lines.begin(), lines.end(), [&](const std::string& line) { return holds(line, after); });
  const auto found = std::find_if(start, lines.end(), [&](const std::string& line) { return holds(line, text); });
  check(found != lines.end(), "trace", path, " has no line with '", text, "'");
  const size_t i = static_cast<size_t>(found - lines.begin());
  return {path, static_cast<i64>(i) + 1, code_from(lines, i)};
}

SourceLine operation_source(std::string_view operation, std::string_view function) {
  const std::string name = "std::string_view name = \"" + std::string(operation) + "\";";
  const std::string call = std::string(function) + "(";
  for (const std::string& path : operation_files()) {
    if (!holds(shipped_text(path), name)) continue;
    const SourceLine found = find_source_line(path, name, " " + call);
    const bool hands_on = found.code.size() == 1 && holds(found.code[0], "." + call);
    return hands_on ? find_source_line(path, "", " " + call) : found;
  }
  fail("trace", "no file of autograd/ops defines ", operation);
}

}  // namespace orrery
