// Chapter 7. Tests of how a mistake takes the place of rows.
#include "nn/check/bug_zoo_rows.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"

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
