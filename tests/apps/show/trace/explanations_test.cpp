// Chapter 9. Explanations: boxes by module, names and equations by box, and an error for what is unknown.
#include "apps/show/trace/explanations.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;

namespace {

TracedStep step_of(const std::string& module, const std::string& operation, size_t inputs) {
  TracedStep step;
  step.number = step.forward = 1;
  step.module = module;
  step.operation = operation;
  step.inputs.resize(inputs);
  step.outputs.resize(1);
  for (size_t i = 0; i < inputs; ++i) step.inputs[i].index = i;
  return step;
}

}  // namespace

TEST_CASE("a step gets its box, its equation and the names of its values, the derivative their gradients") {
  std::vector<TracedStep> steps{step_of("encoder.layers.3.linear1", "linear_relu", 3)};
  TracedStep back = steps[0];
  back.number = 2;
  std::swap(back.inputs, back.outputs);
  steps.push_back(back);
  explain(steps);
  CHECK(steps[0].box == "encoder.layers.3.feed_forward");
  CHECK(steps[0].equation == "a = max(0, x W^T + b), W = W_1");
  CHECK(steps[0].inputs[1].name == "W");
  CHECK(steps[0].outputs[0].name == "a");
  CHECK(steps[1].equation == "dz = da if a > 0, else 0; dx = dz W, dW = dz^T x, db = sum of dz");
  CHECK(steps[1].inputs[0].name == "da");
  CHECK(steps[1].outputs[2].name == "db");
}

TEST_CASE("the same operation means another thing when it comes again") {
  std::vector<TracedStep> steps{step_of("decoder.layers.0.multihead_attn", "linear", 3),
                                step_of("decoder.layers.0.multihead_attn", "linear", 3),
                                step_of("decoder.layers.0.multihead_attn.out_proj", "linear", 3)};
  for (size_t i = 0; i < steps.size(); ++i) steps[i].number = steps[i].forward = static_cast<i64>(i) + 1;
  explain(steps);
  CHECK(steps[0].outputs[0].name == "Q");
  CHECK(steps[1].outputs[0].name == "KV");
  CHECK(steps[1].inputs[0].name == "memory");
  CHECK(steps[2].outputs[0].name == "y");
  CHECK(steps[2].box == steps[0].box);
}

TEST_CASE("boxes have the titles of their layers") {
  CHECK(traced_box("decoder.layers.1.norm3").title == "Decoder layer 1: add & norm after feed forward");
  CHECK(traced_box("src_embed").title == "Input embedding and positional encoding");
  CHECK(small::error_of([] { traced_box("nonsense"); }) == "trace: no box of Figure 1 is called nonsense");
}

TEST_CASE("a step that the paper's model does not have is an error") {
  std::vector<TracedStep> steps{step_of("encoder.layers.0.norm1", "tanh", 1)};
  CHECK(small::error_of([&] { explain(steps); }) == "trace: no explanation of tanh number 1 in encoder.layers.0.norm1");
}
