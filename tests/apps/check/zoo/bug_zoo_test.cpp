// Chapter 7. Tests of the bug zoo: every mistake is found, by a check that the right version passes; and how a mistake
// takes the place of rows.
#include "apps/check/zoo/bug_zoo.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <set>

#include "autograd/check/gradcheck.h"
#include "autograd/check/proof.h"
#include "autograd/check/samples.h"
#include "autograd/ops.h"
#include "nn/check/sample_rows.h"
#include "nn/check/samples.h"
#include "tests/autograd/hidden_mistakes.h"

using namespace orrery;
using nn::Bug;

namespace {

/// The right row that a wrong one takes the place of; null if there is none.
const Sample* right_row(const Sample& wrong) {
  for (const auto* table : {&operation_samples(), &nn::module_samples()}) {
    for (const Sample& row : *table)
      if (row.name == wrong.name && row.variant == wrong.variant) return &row;
  }
  return nullptr;
}

const Bug& bug(const std::string& name) {
  const auto found =
      std::find_if(nn::bug_zoo().begin(), nn::bug_zoo().end(), [&](const Bug& b) { return b.name == name; });
  REQUIRE(found != nn::bug_zoo().end());
  return *found;
}

}  // namespace

TEST_CASE(
    "the zoo has at least 12 mistakes, each with a name of its own, its sentence, a hint and one way to be found") {
  std::set<std::string> names;
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    CHECK(names.insert(b.name).second);
    CHECK(b.mistake.ends_with("."));
    CHECK_FALSE(b.hint.empty());
    CHECK((!b.samples.empty() || b.check));
    CHECK(static_cast<bool>(b.check) == static_cast<bool>(b.check_right));
  }
  CHECK(names.size() >= 12);
}

// The right rows of the same names and inputs are proven with all others.
TEST_CASE("the proof finds every wrong derivative") {
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    if (b.check) continue;
    CHECK(std::any_of(b.samples.begin(), b.samples.end(), [](const Sample& wrong) {
      REQUIRE(right_row(wrong) != nullptr);
      return !prove(wrong, {.mutants = false});
    }));
  }
}

TEST_CASE("the whole proof finds an output that is kept as a Tensor, which no derivative shows") {
  for (const Sample& wrong : bug("output-kept-as-tensor").samples) {
    CAPTURE(wrong.variant);
    const bool is_empty = wrong.build(f64, 1).output().value().count() == 0;
    CHECK(static_cast<bool>(prove(wrong, {.mutants = false})) == is_empty);
  }
}

TEST_CASE("a wrong derivative belongs to the right value: forward alone shows nothing") {
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    if (b.check) continue;
    for (const Sample& wrong : b.samples) {
      for (const Dtype dtype : {f32, f64}) {
        const Tensor value = wrong.build(dtype).output().value(),
                     right = right_row(wrong)->build(dtype).output().value();
        REQUIRE(value.shape() == right.shape());
        const double tolerance = dtype == f32 ? 1e-5 : 1e-12;
        for (i64 i = 0; i < value.count(); ++i) CHECK(value.at(i) == doctest::Approx(right.at(i)).epsilon(tolerance));
      }
    }
  }
}

TEST_CASE("what gradcheck cannot see is found by a check of its own, which the right version passes") {
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    if (!b.check) continue;
    CHECK(b.check() != "");
    CHECK(b.check_right() == "");
  }
  for (const Bug& b : nn::bugs_found_without_derivatives())
    for (const Sample& sample : b.samples) CHECK(gradcheck(sample.build(f64), sample.options));
}

TEST_CASE("a mistake in a function of sequences comes with its leak matrix, which shows a leak if the check is one") {
  int matrices = 0;
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    if (!b.leaks) continue;
    ++matrices;
    const std::string found = b.check();
    CHECK(b.leaks().ok() == !found.starts_with("leakcheck: "));
    if (!b.leaks().ok()) CHECK(found == "leakcheck: " + b.leaks().message());
  }
  CHECK(matrices == 7);
  CHECK(bug("attention-without-scale").leaks().ok());  // no leak: the mask is right
}

TEST_CASE("what is wrong in f32 alone passes every check of its slopes, and fails in f32 alone") {
  for (const std::string name : {"tanh-saturated-early-in-f32", "bias-gradient-negated-in-f32"}) {
    const Proof proof = prove(bug(name).samples.at(0), {.mutants = false});
    for (const ProofPart& part : proof.parts)
      CHECK_MESSAGE(part.ok == (part.name != "f32" && part.name != "far" && part.name != "small"), proof);
  }
}

TEST_CASE("every row of a name, or those of some variants, compute the wrong function of the same leaves") {
  const nn::WrongFunction twice = [](const std::vector<Variable>& x) { return scale(x[0], 2); };
  CHECK(nn::operation_rows("relu", {}, twice).size() == 5);
  const std::vector<Sample> one = nn::operation_rows("relu", {"scalar"}, twice);
  REQUIRE(one.size() == 1);
  const Checkable f = one[0].build(f64);
  CHECK(f.output().item() == 2 * f.leaves[0].value.item());
  CHECK(nn::joined({one, one}).size() == 2);
  CHECK_THROWS_AS(nn::operation_rows("relu", {"scalar", "nonsense"}, twice), Error);
  CHECK_THROWS_AS(nn::layer_rows("nonsense", {}, twice), Error);
}

TEST_CASE("promise 7: long rows: a gradient that is wrong from row 8,192 on") {
  for (const std::string name : {"tanh", "softmax", "log_softmax"}) {
    const auto right = name == "tanh"      ? [](const Variable& x) { return tanh(x); }
                       : name == "softmax" ? [](const Variable& x) { return softmax(x); }
                                           : [](const Variable& x) { return log_softmax(x); };
    i64 wrong = 0;
    for (const Sample& row : nn::operation_rows(name, {}, [right](const std::vector<Variable>& x) {
           return right(apply(hidden::LateRows{8192}, x[0]));
         })) {
      const bool ok = static_cast<bool>(gradcheck(row.build(f64), row.options));
      CHECK(ok == (row.variant != "long"));
      wrong += !ok;
    }
    CHECK(wrong == 1);
  }
}
