// Chapter 9. One forward and one backward pass of a tiny model of the paper, recorded step by step.
//
// The recorder is an observer that keeps every operation of a forward and a backward pass. It watches the model that
// trainings use, through the library's own observer, and copies what goes in and what comes out. An operation that
// reads a parameter belongs to the module that holds this parameter; any other operation belongs to the module that
// computed its first input. Each step is explained: its box in the paper's Figure 1, the names of its values, its
// equation. The lines of our sources that compute it are looked up when they are shown, so that they are true after
// every change.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/observer.h"
#include "core/dtype.h"

namespace orrery {

/// A piece of code: its file from the root of the repository, its first line, and all of its lines.
struct SourceLine {
  std::string path;
  i64 line = 0;
  std::vector<std::string> code;

  std::string str() const { return path + ":" + std::to_string(line); }
};

/// The statement or function that begins in the first line with `text`, searched from the first line with `after` on.
/// Error: the file has no such line.
SourceLine find_source_line(const std::string& path, std::string_view after, std::string_view text);

/// The `function`, "forward" or "backward", of the struct that defines `operation`. If it only calls the same function
/// of a part that operations share, this is the part's, which stands first in the file. Error: there is none.
SourceLine operation_source(std::string_view operation, std::string_view function);

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

/// A box of the paper's Figure 1.
struct TracedBox {
  std::string id;     ///< "encoder.layers.0.self_attn", as modules are named; "loss" for the last one
  std::string title;  ///< "Encoder layer 0: multi-head self-attention"
  SourceLine source;  ///< where the model computes it
};

/// Fills in the box, the equation and the names of values of each step. Error: a step that the paper's model does not
/// have.
void explain(std::vector<TracedStep>& steps);

/// The box with this id.
TracedBox traced_box(const std::string& id);

/// A weight of the traced model, and its gradient after the pass.
struct TracedParameter {
  std::string name;
  Tensor value, gradient;
};

/// The pass and what it was computed from.
struct ModelPass {
  i64 B, h, S, d_k, T, K, d_model, d_ff;            ///< the sizes, by the names of the paper
  std::vector<std::string> source, target, labels;  ///< the tokens
  std::vector<std::string> words;                   ///< the vocabulary
  std::vector<TracedBox> boxes;                     ///< in the order of the forward pass
  std::vector<TracedStep> steps;                    ///< forward, then backward
  std::vector<TracedParameter> parameters;
  double loss;
};

/// Always the same pass. All numbers are f64. The weights are rounded to two decimals, so that every machine computes
/// with the same ones, and so that a reader can compute with them.
ModelPass traced_pass();

/// What is computed, and the sizes, in a few sentences.
std::string introduction(const ModelPass& pass);

/// A value as it is shown: rounded to four decimals, and never -0.
double shown(double x);

/// What is shown, the forward pass, the backward pass and the gradients of the parameters, in `table_width` columns.
void print_pass(std::ostream& out, const ModelPass& pass);

/// The pass as JSON that can stand inside a <script> element: it has no '<'.
std::string trace_json(const ModelPass& pass);

/// The page: apps/show/trace/page.html with the style, the script and the pass in their places.
std::string trace_page(const ModelPass& pass);

}  // namespace orrery
