// Chapter 9. The traced pass: its steps are those of the paper's model, recorded with what they read and compute and
// explained, and every CPU shows the same digits.
#include "apps/show/trace/model_pass.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "apps/program/shipped_files.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/style_source.h"

using namespace orrery;

namespace {

const ModelPass& the_pass() {
  static const ModelPass pass = traced_pass();
  return pass;
}

const TracedStep& step_named(const std::string& box, const std::string& operation, const std::string& output) {
  for (const TracedStep& step : the_pass().steps)
    if (step.box == box && step.operation == operation && !step.is_backward() && step.outputs.at(0).name == output)
      return step;
  REQUIRE_MESSAGE(false, box, ' ', operation, ' ', output);
  return the_pass().steps.front();
}

}  // namespace

TEST_CASE("every operation is walked back once, in the opposite order") {
  const std::vector<TracedStep>& steps = the_pass().steps;
  REQUIRE(steps.size() % 2 == 0);
  for (size_t i = 0; i < steps.size() / 2; ++i) {
    const TracedStep &forward = steps[i], &back = steps[steps.size() - 1 - i];
    CHECK_FALSE(forward.is_backward());
    CHECK(back.forward == forward.number);
    CHECK(back.operation == forward.operation);
    CHECK(back.box == forward.box);
    CHECK_FALSE(forward.equation.empty());
    CHECK(back.equation != forward.equation);
    for (const TracedValue& value : back.inputs) CHECK(value.name.starts_with("d"));
  }
}

TEST_CASE("the equation of a derivative says how each gradient that it passes on is computed") {
  for (const TracedStep& step : the_pass().steps) {
    CAPTURE(step.number);
    CAPTURE(step.equation);
    for (const TracedValue& output : step.outputs) {
      if (!step.is_backward()) continue;
      CAPTURE(output.name);
      CHECK(std::regex_search(step.equation, std::regex("(^|[^A-Za-z])" + output.name + "($|[^A-Za-z])")));
    }
    if (step.equation.find("sigma") != std::string::npos && !step.is_backward())
      CHECK(step.equation.find("sigma = ") != std::string::npos);
  }
}

TEST_CASE("the loss has its labels, and the probabilities of all words") {
  const TracedStep& loss = step_named("loss", "cross_entropy", "L");
  REQUIRE(loss.inputs.size() == 2);
  CHECK(loss.inputs[1].name == "labels");
  CHECK(loss.inputs[1].words == the_pass().labels);
  REQUIRE(loss.inside.size() == 1);
  const Tensor& P = loss.inside[0].value;
  REQUIRE(P.shape() == Shape{1, 6, 7});
  double sum_of_logs = 0;
  for (i64 t = 0; t < 6; ++t) {
    double total = 0;
    for (i64 word = 0; word < 7; ++word) total += P(0, t, word);
    CHECK(total == doctest::Approx(1));
    sum_of_logs += std::log(P(0, t, static_cast<i64>(loss.inputs[1].value.at(t))));
  }
  CHECK(-sum_of_logs / 6 == doctest::Approx(the_pass().loss));
}

TEST_CASE("only the decoder's self-attention hides weights, those of later tokens") {
  constexpr i64 T = 6;
  std::vector<i64> later;  // of two heads with T x T weights
  for (i64 row = 0; row < 2 * T; ++row)
    for (i64 j = row % T + 1; j < T; ++j) later.push_back(row * T + j);
  for (const TracedStep& step : the_pass().steps) {
    CAPTURE(step.number);
    for (const TracedValue& value : step.outputs) {
      const bool decoder = step.box == "decoder.layers.0.self_attn" && step.operation == "masked_softmax";
      CHECK(value.masked == (decoder && !step.is_backward() ? later : std::vector<i64>{}));
    }
  }
}

TEST_CASE("the boxes are those of Figure 1, in the order of the forward pass") {
  std::vector<std::string> ids;
  for (const TracedBox& box : the_pass().boxes) ids.push_back(box.id);
  const std::string e = "encoder.layers.0.", d = "decoder.layers.0.";
  CHECK(ids == std::vector<std::string>{"src_embed", e + "self_attn", e + "norm1", e + "feed_forward", e + "norm2",
                                        "tgt_embed", d + "self_attn", d + "norm1", d + "multihead_attn", d + "norm2",
                                        d + "feed_forward", d + "norm3", "generator", "loss"});
}

TEST_CASE("the line of a step holds its function, in the struct of the operation or of the product that it shares") {
  for (const TracedStep& step : the_pass().steps) {
    CAPTURE(step.number);
    const std::string function = step.is_backward() ? " backward(" : " forward(";
    const SourceLine source = operation_source(step.operation, step.is_backward() ? "backward" : "forward");
    const std::vector<std::string> lines = style::split_lines(contents(style::root / source.path));
    size_t at = static_cast<size_t>(source.line) - 1;
    CHECK(lines.at(at).find(function) != std::string::npos);
    const auto begins_struct = [](const std::string& line) {
      return line.starts_with("struct ") || (line.starts_with("template <") && line.find("> struct ") != line.npos);
    };
    while (at > 0 && !begins_struct(lines[at])) --at;
    if (step.operation == "linear") {
      CHECK(lines[at].ends_with("struct Product {"));
      continue;
    }
    while (at + 1 < lines.size() && lines[at].find("std::string_view name = ") == std::string::npos) ++at;
    CHECK(lines[at].find('"' + step.operation + '"') != std::string::npos);
  }
}

TEST_CASE("a value that a step reads is what the step named there computed") {
  for (const TracedStep& step : the_pass().steps) {
    if (step.is_backward()) continue;
    for (const TracedValue& value : step.inputs) {
      CAPTURE(step.number);
      if (value.steps.empty()) continue;
      REQUIRE(value.steps.size() == 1);
      REQUIRE(value.steps[0] < step.number);
      CHECK(same_bits(the_pass().steps[static_cast<size_t>(value.steps[0]) - 1].outputs.at(value.output).value,
                      value.value));
    }
  }
}

TEST_CASE("a parameter's gradient is the sum of what the steps add to it") {
  for (const TracedParameter& parameter : the_pass().parameters) {
    CAPTURE(parameter.name);
    std::vector<double> sum(static_cast<size_t>(parameter.value.count()));
    for (const TracedStep& step : the_pass().steps) {
      if (!step.is_backward()) continue;
      for (const TracedValue& value : step.outputs)
        for (i64 i = 0; value.parameter == parameter.name && i < value.value.count(); ++i)
          sum[static_cast<size_t>(i)] += value.value.at(i);
    }
    double largest = 0;
    for (i64 i = 0; i < parameter.gradient.count(); ++i) {
      CHECK(std::fabs(parameter.gradient.at(i) - sum[static_cast<size_t>(i)]) <= 1e-14);
      largest = std::max(largest, std::fabs(parameter.gradient.at(i)));
    }
    CHECK(largest > 1e-3);
  }
}

TEST_CASE("weights have two decimals, and the sizes that a reader must tell apart differ") {
  for (const TracedParameter& p : the_pass().parameters)
    for (i64 i = 0; i < p.value.count(); ++i) CHECK(std::round(p.value.at(i) * 100) / 100 == p.value.at(i));
  const ModelPass& pass = the_pass();
  const i64 QKV = 3 * pass.d_model;  // queries, keys and values side by side
  CHECK(std::set<i64>{pass.B, pass.h, pass.S, pass.T, pass.d_k, pass.K, pass.d_model, pass.d_ff, QKV}.size() == 9);
  CHECK(pass.d_model == 8);  // those of chapter 7's one_token.cpp
  CHECK(pass.d_ff == 16);
}

// The rounding of f64 differs between CPUs by about 1e-15. No value lies that near to where its last digit changes.
TEST_CASE("every CPU shows the same digits") {
  constexpr double unit = 1e4, safe = 1e-8;
  size_t values = 0;
  double nearest = 1;
  const auto look_at = [&](const Tensor& x) {
    for (i64 i = 0; i < x.count(); ++i, ++values) {
      const double part = std::fabs(x.at(i)) * unit - std::floor(std::fabs(x.at(i)) * unit);
      nearest = std::min(nearest, std::fabs(part - 0.5));
    }
  };
  for (const TracedStep& step : the_pass().steps) {
    for (const TracedValue& value : step.inputs)
      if (value.parameter.empty()) look_at(value.value);
    for (const TracedValue& value : step.outputs) look_at(value.value);
    for (const TracedValue& value : step.inside) look_at(value.value);
  }
  for (const TracedParameter& p : the_pass().parameters) look_at(p.gradient);
  CHECK(values > 5000);
  CHECK(nearest > safe);
}

TEST_CASE("shown values are rounded to four decimals, without a negative zero") {
  CHECK(shown(1.23456) == 1.2346);
  CHECK(shown(-1.23456) == -1.2346);
  CHECK_FALSE(std::signbit(shown(-1e-18)));
}

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

TEST_CASE("a line is found after another one, and its code ends where the statement or the body ends") {
  const SourceLine line = find_source_line("nn/models/stack.h", "with_attention(", "return with_residual(");
  CHECK(line.path == "nn/models/stack.h");
  const std::vector<std::string> file = style::split_lines(contents(style::root / line.path));
  CHECK(file.at(static_cast<size_t>(line.line) - 1).find("with_residual(attended, norm2") != std::string::npos);
  CHECK(line.code.size() == 2);
  CHECK(line.code.front().starts_with("return with_residual("));
  CHECK(line.code.back().ends_with(";"));
  CHECK(line.str() == "nn/models/stack.h:" + std::to_string(line.line));
}

TEST_CASE("a function that only calls a part's is shown as that part's") {
  const SourceLine back = operation_source("linear", "backward"), own = operation_source("linear_relu", "backward");
  CHECK(back.path == "autograd/ops/fused/linear/linear.cpp");
  CHECK(std::count_if(back.code.begin(), back.code.end(),
                      [](const std::string& line) { return line.find("matmul_into(") != line.npos; }) == 2);
  CHECK(operation_source("linear", "forward").line < back.line);
  CHECK(back.line < own.line);
}

TEST_CASE("what is not there is an error") {
  CHECK(small::error_of([] { operation_source("nonsense", "forward"); }) ==
        "trace: no file of autograd/ops defines nonsense");
  CHECK(small::error_of([] { find_source_line("nn/pass.h", "", "nonsense"); }) ==
        "trace: nn/pass.h has no line with 'nonsense'");
  CHECK(small::error_of([] { shipped_text("nn/nonsense.h"); }).starts_with("read "));
}
