// Chapter 7. Tests of how a mistake takes the place of rows.
#include "apps/check/zoo/bug_zoo_rows.h"

#include <doctest/doctest.h>

#include "autograd/check/gradcheck.h"
#include "autograd/ops.h"
#include "tests/autograd/hidden_mistakes.h"

using namespace orrery;

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
