// Chapter 3. Tests of the mutants: which are made, which are caught, and that one which nothing catches is reported by
// name.
#include "autograd/check/mutation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "autograd/apply.h"
#include "autograd/check/samples.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/check/samples.h"
#include "tests/core/support.h"

using namespace orrery;
using small::normal;
using Fate = Mutant::Fate;

namespace {

template <class F>
MutationReport mutate_function(const F& f, const std::vector<Tensor>& inputs, std::vector<DeclaredZero> zeros = {},
                               const GradcheckOptions& options = {}) {
  return mutate(checkable(f, inputs, {}, std::move(zeros)), options);
}

std::set<std::string> changes(const MutationReport& report, const std::string& operation) {
  std::set<std::string> found;
  for (const Mutant& mutant : report.mutants)
    if (mutant.operation == operation) found.insert(mutant.change);
  return found;
}

// Throws something other than an Error if dL/dy is large.
struct Thrower {
  static constexpr std::string_view name = "thrower";
  Tensor forward(const Tensor& x) { return x * 2.0; }
  void backward(const Tensor& dy, Grads& dx) {
    if (dy.at(0) > 1e3) throw std::runtime_error("too large");
    dx.add(0, dy * 2.0);
  }
};

}  // namespace

TEST_CASE("one operation of one input has six mutants, and each is caught") {
  const MutationReport report = mutate_function([](const Variable& x) { return tanh(x); }, {normal({2, 3}, 3)});
  CHECK(report);
  CHECK(changes(report, "tanh") == std::set<std::string>{"x 0", "x -1", "x 2", "x 1.0001", "dropped", "transposed"});
  CHECK(report.mutants.size() == 6);
  CHECK(report.count(Fate::caught) == 6);
  CHECK(small::text_of(report) == "6 mutants, 6 caught");
}

TEST_CASE("where a value is used twice, overwriting is a mutant of the operation and of the engine") {
  const MutationReport report = mutate_function(
      [](const Variable& x) {
        const Variable s = tanh(x);
        return mul(s, exp(s));
      },
      {normal({3}, 3)});
  CHECK(report);
  CHECK(changes(report, "exp").contains("overwriting"));
  CHECK_FALSE(changes(report, "mul").contains("overwriting"));
  CHECK(changes(report, "engine") == std::set<std::string>{"overwrites", "oldest first"});
}

TEST_CASE("a missing un-broadcast is caught at a parameter and within the graph") {
  const auto why = [](const MutationReport& report) {
    for (const Mutant& mutant : report.mutants)
      if (mutant.change == "no un-broadcast") return mutant.why();
    return std::string("no such mutant");
  };
  const std::vector<Tensor> inputs = {normal({4, 3}, 3), normal({3}, 3)};
  CHECK(why(mutate_function([](const Variable& a, const Variable& b) { return add(a, b); }, inputs)) == "shape");
  CHECK(why(mutate_function([](const Variable& a, const Variable& b) { return add(a, exp(b)); }, inputs)) == "error");
  CHECK(why(mutate_function([](const Variable& a) { return exp(a); }, {inputs[0]})) == "no such mutant");
}

TEST_CASE("what cannot be wrong is equivalent, with its reason") {
  const auto reasons = [](const MutationReport& report) {
    std::set<std::string> found;
    for (const Mutant& mutant : report.mutants)
      if (mutant.fate == Fate::equivalent) found.insert(mutant.why());
    CHECK(report);
    return found;
  };
  using Words = std::set<std::string>;
  CHECK(reasons(mutate_function([](const Variable& x) { return exp(x); }, {normal({0, 3}, 3)})) == Words{"size 0"});
  CHECK(reasons(mutate_function([](const Variable& x) { return softmax(x); }, {normal({3, 1}, 3)},
                                {{"input 0", "one element"}})) == Words{"declared zero: one element"});
  CHECK(reasons(mutate_function([](const Variable& x) { return sum(x); }, {normal({3, 3}, 3)})) ==
        Words{"equal to its transpose"});
  CHECK(reasons(mutate_function([](const Variable& x) { return x + neg(exp(x)) * 0; }, {normal({3}, 3)})) ==
        Words{"this gradient is zero", "on its way to the inputs it is multiplied by zero",
              "the rule makes no difference here"});
}

TEST_CASE("a mistake that the checker cannot see survives, by name") {
  const GradcheckOptions blunt{.rtol = 1e-3};
  const MutationReport report = mutate_function([](const Variable& x) { return exp(x); }, {normal({3}, 3)}, {}, blunt);
  CHECK_FALSE(report);
  CHECK(report.count(Fate::survived) == 1);
  CHECK(small::text_of(report) ==
        "5 mutants, 4 caught\n  survived: x 1.0001: input 0 of exp (the gradients change by less than the checker "
        "tolerates)");
}

TEST_CASE("a declared zero excuses what leads to it, and nothing else") {
  const GradcheckOptions blunt{.rtol = 1e-3};
  const auto f = [](const Variable& x, const Variable& y) { return exp(x) + softmax(y); };
  const MutationReport report =
      mutate_function(f, {normal({3, 1}, 3), normal({3, 1}, 3)}, {{"input 1", "one element"}}, blunt);
  CHECK(report.count(Fate::survived) == 2);  // "x 1.0001" of what exp and add pass on to input 0
  for (const Mutant& mutant : report.mutants) {
    const bool to_zero = mutant.operation == "softmax" || (mutant.operation == "add" && mutant.input == 1);
    CHECK((mutant.why() == "declared zero: one element") == to_zero);
  }
}

TEST_CASE("an engine's mutant that makes no difference is equivalent, with its reason") {
  const MutationReport report =
      mutate_function([](const Variable& a, const Variable& b) { return add(a, b); }, {normal({3}, 3), normal({3}, 3)});
  CHECK(report);
  const auto order = std::find_if(report.mutants.begin(), report.mutants.end(),
                                  [](const Mutant& mutant) { return mutant.change == "oldest first"; });
  REQUIRE(order != report.mutants.end());
  CHECK(order->fate == Fate::equivalent);
  CHECK(order->why() == "the rule makes no difference here");
}

TEST_CASE("leaves of one name keep their own slopes") {
  Checkable f = checkable([](const Variable& a, const Variable& b) { return exp(a) * tanh(b); },
                          {normal({3}, 3), normal({3}, 3) * 0.5});
  for (NamedParameter& leaf : f.leaves) leaf.name = "weight";
  CHECK(mutate(f));
}

TEST_CASE("a function that throws something other than an Error is caught like one that throws an Error") {
  const auto steep = [](const Variable& x) { return apply(Thrower{}, x); };
  const Variable x = parameter(normal({3}, 3));
  const Checkable f{.output = [=] { return steep(x); }, .leaves = {{"x", x}}};
  CHECK_THROWS_AS(gradients_of(f, full({3}, 1e4, f64)), std::runtime_error);
  CHECK_FALSE(x.gradient().defined());
}

TEST_CASE("a backward that is wrong already has no mutants") {
  const auto wrong = [](const Variable& x) { return mul(x, detach(x)); };
  CHECK_THROWS_WITH_AS(mutate_function(wrong, {normal({3}, 3)}), doctest::Contains("wrong before anything is changed"),
                       Error);
}

TEST_CASE("values and gradients are restored") {
  const Checkable f = checkable([](const Variable& x) { return exp(x); }, {normal({3}, 3)});
  mutate(f);
  CHECK(same_bits(f.leaves[0].value.value(), normal({3}, 3)));
  CHECK_FALSE(f.leaves[0].value.gradient().defined());
}

TEST_CASE("slow: promise 7: every operation: all mutants are caught, except the few that change nothing") {
  i64 caught = 0, equivalent = 0;
  std::set<std::string> broken_rules;
  for (const Sample& sample : operation_samples()) {
    const MutationReport report = mutate(sample.build(f64), sample.options);
    CHECK_MESSAGE(report, sample.name << ", " << sample.variant << ": " << report);
    caught += report.count(Fate::caught);
    equivalent += report.count(Fate::equivalent);
    broken_rules.merge(changes(report, "engine"));
  }
  MESSAGE(caught, " wrong backwards caught, ", equivalent, " equivalent");
  CHECK(caught > 1000);
  CHECK(equivalent * 3 < caught);  // those of empty and declared-zero rows, for example
  CHECK(broken_rules == std::set<std::string>{"no un-broadcast", "overwrites", "oldest first"});
}

TEST_CASE("slow: promise 7: layers: all mutants are caught, and there are many") {
  i64 caught = 0;
  for (const Sample& sample : nn::module_samples()) {
    if (sample.options.coordinates > 0) continue;  // models: `orrery gradcheck --mutate`
    const MutationReport report = mutate(sample.build(f64), sample.options);
    CHECK_MESSAGE(report, sample.name << ", " << sample.variant << ": " << report);
    caught += report.count(Fate::caught);
  }
  MESSAGE(caught, " wrong backwards of layers caught");
  CHECK(caught > 1000);
}
