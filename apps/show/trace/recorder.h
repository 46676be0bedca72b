// Chapter 9. The recorder: an observer that keeps every operation of a forward and a backward pass.
//
// It watches the model that trainings use, through the library's own observer, and copies what goes in and what comes
// out. An operation that reads a parameter belongs to the module that holds this parameter; any other operation belongs
// to the module that computed its first input.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/observer.h"

namespace orrery {

/// A value that an operation reads or computes, or a gradient.
struct TracedValue {
  Tensor value;
  size_t index = 0;       ///< which input or output of the forward operation it is, or belongs to
  std::string parameter;  ///< the name, if this is a parameter or what is added to a parameter's gradient
  /// Forward, of an input: the step that computed it; none if it is a parameter or a constant. Backward, of a gradient
  /// that arrives: the steps whose sum it is; of one that leaves: the forward step whose output it belongs to.
  std::vector<i64> steps;
  size_t output = 0;               ///< forward, of an input: which output of that step it is
  std::string name;                ///< "Q", or of a gradient "dQ"; set by `explain`
  std::vector<i64> masked;         ///< the places of the numbers that a mask hides; set by `traced_pass`
  std::vector<std::string> words;  ///< the tokens, if the numbers count words; set by `traced_pass`
};

/// One operation of the forward pass, or its derivative.
struct TracedStep {
  i64 number = 0;   ///< from 1 on, forward and backward together
  i64 forward = 0;  ///< the number of the forward step; equal to `number` in the forward pass
  std::string operation;
  std::string module;  ///< "encoder.layers.0.self_attn"
  std::vector<TracedValue> inputs, outputs;
  std::vector<TracedValue> inside;  ///< what it computes on its way and keeps to itself; set by `traced_pass`
  std::string box, equation;        ///< the box of Figure 1, and what is computed; set by `explain`

  bool is_backward() const { return number != forward; }
};

/// Put it in force (ObserverScope) for a forward pass and its backward together: a backward of operations that it has
/// not seen throws std::out_of_range.
class StepRecorder : public Observer {
 public:
  void forward_ended(std::string_view name, std::span<const Variable* const> inputs,
                     std::span<const Tensor> outputs) override;
  void recorded(const Node& node) override;
  void backward_begins(const Node& node) override;
  bool changes_contributions() const override { return true; }  // to see each one; none is changed
  void contribution(const Node& node, size_t input, Tensor& gradient) override;

  const std::vector<TracedStep>& steps() const { return steps_; }

 private:
  const TracedStep& forward_step(const Node& node) const;

  std::vector<TracedStep> steps_;
  std::map<u64, i64> step_of_node_;
  std::map<std::pair<i64, size_t>, std::vector<i64>> added_by_;  // to the gradient of a forward step's output
};

}  // namespace orrery
