// Chapter 3. Tests of the parts about passes: numbers far out, passes in between, changes in place, threads, many
// calls.
#include <doctest/doctest.h>

#include "autograd/check/proof_parts.h"
#include "autograd/check/rounding.h"
#include "autograd/ops.h"
#include "core/mask.h"
#include "tests/autograd/hidden_mistakes.h"

using namespace orrery;

namespace {

// x^2, correct except for what `wrong` does to g.
Sample almost_square(const std::function<Tensor(const Tensor& x, const Tensor& g)>& wrong) {
  const hidden::Square::Rule rule = [wrong](const Tensor& x, const Tensor&, const Tensor& g, Grads& dx) {
    dx.add(0, wrong(x, g));
  };
  return sample_of("square", [rule](const Variable& x) { return apply(hidden::Square{rule}, x); }, {{3, 4}});
}

template <class Operation>
Sample of_operation(const Operation& operation) {
  return sample_of("operation", [operation](const Variable& x) { return tanh(apply(operation, tanh(x))); }, {{3, 4}});
}

}  // namespace

TEST_CASE("promise 7: far: numbers beyond those that N(0, 1) draws") {
  const auto verdict = [](const std::function<bool(double)>& wrong) {
    const Sample sample =
        almost_square([wrong](const Tensor& x, const Tensor& g) { return hidden::doubled_where(x, g, wrong); });
    CHECK(gradcheck(sample.build(f64), sample.options));
    return parts::prove_far(sample, 1);
  };
  CHECK(verdict([](double) { return false; }).ok);
  CHECK(verdict([](double x) { return std::fabs(x) > 4; }).detail.starts_with("with inputs 4 times as large:\n"));
  CHECK_FALSE(verdict([](double x) { return x > 5; }).ok);
  CHECK_FALSE(verdict([](double x) { return x < -3.5; }).ok);
  const Sample in_f32 = almost_square([](const Tensor& x, const Tensor& g) {
    return hidden::doubled_where(x, g, [&](double v) { return x.dtype() == f32 && std::fabs(v) > 5; });
  });
  CHECK(compare_precisions(in_f32, 1).problem == "");
  CHECK(parts::prove_far(in_f32, 1).detail.starts_with("with inputs 4 times as large, in f32:\ninput 0 is off by "));
  const Sample growing{
      "growing",
      "",
      [](Dtype dtype, u64) { return checkable([](const Variable& x) { return exp(x); }, {full({1}, 24.0, dtype)}); },
      {}};
  CHECK(parts::prove_far(growing, 1).detail ==
        "inputs 4 times as large in f64 alone, and 8 times as large in f64 alone");
  const Sample steep = sample_of("steep", [](const Variable& x) { return exp(exp(exp(x * x))); }, {{3, 4}});
  CHECK(parts::prove_far(steep, 1).detail == "not tried: no finite value there");
}

TEST_CASE("promise 7: interleaved: what a forward keeps is its own") {
  for (const bool first : {true, false}) {
    const Sample sample = of_operation(hidden::Remembering{std::make_shared<hidden::Remembering::Memory>(), first});
    CHECK(gradcheck(sample.build(f64), sample.options));
    const ProofPart part = parts::prove_interleaved(sample, 1);
    CHECK_FALSE(part.ok);
    CHECK(part.detail.starts_with(first ? "with other numbers" : "two forward passes before backward"));
  }
}

TEST_CASE("promise 7: changed: a Tensor where a Saved belongs") {
  const ProofPart input = parts::prove_changed(of_operation(hidden::BareInput{}), 1);
  CHECK(input.detail ==
        "what tanh returned was changed in place after forward: bare_input gives another gradient, and "
        "no error");
  CHECK(input.text() == input.detail + ": a Tensor where a Saved belongs?");
  CHECK(parts::prove_changed(of_operation(hidden::BareOutput{}), 1).detail.starts_with("what bare_output returned"));
  const ProofPart right = parts::prove_changed(almost_square([](const Tensor&, const Tensor& g) { return g; }), 1);
  CHECK(right.ok);
  CHECK(right.detail == "4 changes in place: 2 errors, else the same bits");
}

TEST_CASE(
    "promise 7: changed: a backward that runs operations of its own, whose outputs are no more values of the pass") {
  const ProofPart part = parts::prove_changed(almost_square([](const Tensor&, const Tensor& g) {
                                                for (int i = 0; i < 100; ++i) exp(constant(g));
                                                return g;
                                              }),
                                              1);
  CHECK(part.ok);
  CHECK(part.detail == "4 changes in place: 2 errors, else the same bits");
}

TEST_CASE("promise 7: repeatable and threads: every 50th pass, exactly 4 threads, more than 8") {
  const auto calls = std::make_shared<int>(0);
  const Sample fiftieth =
      almost_square([calls](const Tensor&, const Tensor& g) { return ++*calls % 50 == 0 ? g * 1.001 : g; });
  CHECK(parts::prove_repeatable(fiftieth, 1).detail == "pass 50 gives other bits for input 0");
  const auto with_threads = [](const std::function<bool(int)>& wrong) {
    const parts::KeepThreads keep;
    return parts::prove_threads(
        almost_square([wrong](const Tensor&, const Tensor& g) { return wrong(threads()) ? g * 1.001 : g; }), 1);
  };
  CHECK(with_threads([](int) { return false; }).ok);
  CHECK(with_threads([](int n) { return n == 4; }).detail == "4 threads give other bits for input 0");
  CHECK(with_threads([](int n) { return n > 8; }).detail == "9 threads give other bits for input 0");
  CHECK(with_threads([](int n) { return n > 12; }).detail == "13 threads give other bits for input 0");
}

TEST_CASE("promise 13: padding: what stands behind a length must reach neither the output nor a gradient") {
  // f(x, w) for x [2, 3, 4], of whose second row only the first two positions are real.
  const auto part_of = [](const std::function<Variable(const Variable& x, const Variable& w)>& f,
                          std::vector<i32> output) {
    return parts::prove_padding(
        {.name = "rows",
         .variant = "",
         .make =
             [=](Dtype dtype, u64 seed) {
               Rng rng(seed);
               Checkable result = checkable(f, {randn({2, 3, 4}, rng, dtype), randn({4}, rng, dtype)});
               result.padding = {.places = {{"input 0", {3, 2}}}, .output = output};
               return result;
             }},
        1);
  };
  const Mask mask = Mask::padding(std::vector<i32>{3, 2});
  const auto cleared = [=](const Variable& x) {
    return reshape(zero_padding(reshape(x, {2, 1, 3, 4}), mask), {2, 3, 4});
  };
  CHECK(part_of([=](const Variable& x, const Variable& w) { return cleared(x) * w; }, {}).ok);
  CHECK(part_of([=](const Variable& x, const Variable& w) { return cleared(x) * w; }, {3, 2}).ok);
  // The real rows of x + w are right, and so is every gradient. Those of x w are right, but dw adds up 0 times NaN.
  CHECK(part_of([](const Variable& x, const Variable& w) { return x + w; }, {3, 2}).ok);
  CHECK(part_of([](const Variable& x, const Variable& w) { return x * w; }, {3, 2}).detail ==
        "nan behind the padding lengths gives other bits for input 1");
  // 0 times a sum of squares is 0 unless they overflow.
  const auto norm = [](const Variable& x) { return x * x; };
  CHECK(part_of([=](const Variable& x, const Variable& w) { return cleared(norm(x)) * w; }, {}).detail ==
        "nan behind the padding lengths gives other bits for input 0");
  CHECK(part_of([](const Variable& x, const Variable& w) { return x + w; }, {}).detail ==
        "the padding of input 0 has a gradient");
}
