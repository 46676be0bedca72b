// Chapter 9. The recorder: operations as steps, with what they read and compute, and the gradients they pass on.
#include "apps/show/trace/recorder.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

Tensor row(const std::vector<double>& numbers) {
  return Tensor::of<double>({static_cast<i64>(numbers.size())}, numbers);
}

// a b + a, with a used twice.
std::vector<TracedStep> recorded_steps() {
  const Variable a = parameter(row({1, 2}), "first.a"), b = parameter(row({3, 4}), "second.part.b");
  StepRecorder recorder;
  const ObserverScope scope(recorder);
  const Variable product = a * b;
  backward(sum(product * product + a));
  return recorder.steps();
}

}  // namespace

TEST_CASE("each operation is one step forward and one step back, newest first") {
  const std::vector<TracedStep> steps = recorded_steps();
  REQUIRE(steps.size() == 8);
  std::vector<std::string> names;
  std::vector<i64> forward;
  for (const TracedStep& step : steps) {
    names.push_back(step.operation);
    forward.push_back(step.forward);
    CHECK(step.is_backward() == (step.number > 4));
  }
  CHECK(names == std::vector<std::string>{"mul", "mul", "add", "sum", "sum", "add", "mul", "mul"});
  CHECK(forward == std::vector<i64>{1, 2, 3, 4, 4, 3, 2, 1});
  for (size_t i = 0; i < steps.size(); ++i) CHECK(steps[i].number == static_cast<i64>(i) + 1);
}

TEST_CASE("inputs say where they come from, and a step belongs to the module of its parameter or of its first input") {
  const std::vector<TracedStep> steps = recorded_steps();
  REQUIRE(steps[0].inputs.size() == 2);
  CHECK(steps[0].inputs[0].parameter == "first.a");
  CHECK(steps[0].inputs[1].parameter == "second.part.b");
  CHECK(steps[0].module == "first");
  CHECK(steps[1].inputs[0].steps == std::vector<i64>{1});
  CHECK(steps[1].module == "first");
  CHECK(steps[3].module == "first");
  CHECK(steps[7].module == "first");
  CHECK(steps[0].outputs.at(0).value.at(1) == 8);
}

TEST_CASE("a gradient names the steps whose sum it is, and each part that is passed on is recorded by itself") {
  const std::vector<TracedStep> steps = recorded_steps();
  CHECK(steps[4].inputs.at(0).steps.empty());                    // the loss
  CHECK(steps[6].inputs.at(0).steps == std::vector<i64>{6});     // y^2
  CHECK(steps[7].inputs.at(0).steps == std::vector<i64>{7, 7});  // y is both factors of y^2
  CHECK(steps[7].inputs.at(0).value.at(0) == 6);
  CHECK(steps[5].outputs.at(0).steps == std::vector<i64>{2});
  CHECK(steps[5].outputs.at(1).parameter == "first.a");
  CHECK(steps[7].outputs.at(0).parameter == "first.a");
  CHECK(steps[7].outputs.at(0).value.at(0) == 18);  // 2 a b b
  CHECK(steps[7].outputs.at(1).value.at(0) == 6);   // 2 a b a
}
