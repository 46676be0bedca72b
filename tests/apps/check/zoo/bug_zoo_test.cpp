// Chapter 7. Tests of the bug zoo: every mistake is found, by a check that the right version passes.
#include "apps/check/zoo/bug_zoo.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "autograd/check/proof.h"
#include "autograd/check/samples.h"
#include "nn/check/samples.h"

using namespace orrery;
using nn::Bug;

namespace {

/// The right row that a wrong one takes the place of; null if there is none.
const Sample* right_row(const Sample& wrong) {
  for (const auto* table : {&operation_samples(), &nn::module_samples()}) {
    for (const Sample& row : *table) {
      if (row.name == wrong.name && row.variant == wrong.variant) return &row;
    }
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

TEST_CASE("the proof finds every wrong derivative, and passes the right rows of the same names and inputs") {
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    int found = 0;
    for (const Sample& wrong : b.samples) {
      const Sample* right = right_row(wrong);
      REQUIRE(right != nullptr);
      found += !prove(wrong, {.mutants = false});
      CHECK(prove(*right, {.mutants = false}));
    }
    CHECK((found > 0 || b.check));
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

TEST_CASE("a mistake stands in every row of its function") {
  const auto variants = [](const std::string& name) {
    std::set<std::string> rows;
    for (const Sample& sample : bug(name).samples) rows.insert(sample.name + ", " + sample.variant);
    return rows;
  };
  using Rows = std::set<std::string>;
  CHECK(variants("softmax-without-inner-product") ==
        Rows{"softmax, rows", "softmax, one element", "softmax, size 0", "softmax, tails", "softmax, long"});
  CHECK(variants("relu-derivative-at-zero") ==
        Rows{"relu, [3, 4]", "relu, scalar", "relu, size 0", "relu, tails", "relu, long"});
  CHECK(variants("dropout-not-rescaled") ==
        Rows{"dropout, p 0.3", "dropout, p 0", "dropout, p 1", "Dropout, training"});
}

TEST_CASE("what gradcheck cannot see is found by a check of its own, which the right version passes") {
  for (const Bug& b : nn::bug_zoo()) {
    CAPTURE(b.name);
    if (!b.check) continue;
    CHECK(b.check() != "");
    CHECK(b.check_right() == "");
  }
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
  CHECK(matrices == 6);
  CHECK(bug("attention-without-scale").leaks().ok());  // no leak: the mask is right
}

TEST_CASE("the messages say what is wrong") {
  CHECK(bug("target-not-shifted").check() ==
        "leakcheck: LEAK: target position 1 of row 0 -> logits position 0 of row 0, and 7 more");
  CHECK(bug("attention-without-scale").check() ==
        "reference value: the weight of the first of two keys is 0.9; computed by hand from equation 1 it is 0.75");
  CHECK(bug("mask-after-softmax").numbers() ==
        "the weights of position 0 of row 0: 0.3440 0.0000 0.0000 0.0000, which add up to 0.3440");
  CHECK(bug("masked-scores-set-to-zero").numbers() ==
        "the weights of position 0 of row 0: 0.3909 0.2030 0.2030 0.2030, which add up to 1.0000");
  const Sample& dropout = bug("dropout-not-rescaled").samples.at(0);
  CHECK(gradcheck(dropout.build(f64), dropout.options).message.find("ratio 0.7000 everywhere") != std::string::npos);
}

TEST_CASE("what is wrong in f32 alone passes every check of its slopes, and fails in f32 alone") {
  for (const std::string name : {"tanh-saturated-early-in-f32", "bias-gradient-negated-in-f32"}) {
    const Proof proof = prove(bug(name).samples.at(0), {.mutants = false});
    for (const ProofPart& part : proof.parts)
      CHECK_MESSAGE(part.ok == (part.name != "f32" && part.name != "far" && part.name != "small"), proof);
  }
}
