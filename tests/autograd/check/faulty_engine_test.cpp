// Chapter 3. Tests of the engine without a rule: right where the rule has nothing to do, wrong where it has.
#include "autograd/check/faulty_engine.h"

#include <doctest/doctest.h>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;

namespace {

using Numbers = std::vector<double>;

// Whether the rule had anything to do in a walk of y; `error` is what the walk threw.
bool walk_without(EngineRule rule, const Variable& y, std::string& error) {
  bool needed = false;
  error = error_of([&] { backward_without(rule, y, full(y.shape(), 1.0, f64), needed); });
  return needed;
}

}  // namespace

TEST_CASE("in a chain of equal shapes neither rule has anything to do, and gradients are right") {
  std::string error;
  for (const EngineRule rule : {EngineRule::unbroadcast, EngineRule::newest_first}) {
    const Variable a = leaf({1, 2});
    CHECK_FALSE(walk_without(rule, total(a), error));
    CHECK(error == "");
    CHECK(elements(a.gradient()) == Numbers{1, 1});
  }
}

TEST_CASE("oldest first: a node is visited before its gradient is complete") {
  const Variable a = leaf({1, 2});
  std::string error;
  // plus(a, a) is older than times.
  const Variable s = plus(a, a), product = times(s, a);
  CHECK(walk_without(EngineRule::newest_first, total(plus(s, product)), error));
  CHECK(error.find("was visited before") != std::string::npos);
  CHECK_FALSE(a.gradient().defined());
  const Variable b = leaf({1, 2});
  const Variable t = plus(b, b);
  CHECK_FALSE(walk_without(EngineRule::unbroadcast, total(plus(t, times(t, b))), error));
  CHECK(elements(b.gradient()) == Numbers{2 + 4, 2 + 8});
}

TEST_CASE("no un-broadcast: a parameter gets a gradient of another shape, and an operation refuses it") {
  std::string error;
  const Variable a = leaf({1}), b = leaf({1, 2, 3});
  CHECK(walk_without(EngineRule::unbroadcast, total(plus(b, a)), error));
  CHECK(error == "");
  CHECK(a.gradient().shape() == Shape{3});
  const Variable c = leaf({1});
  CHECK(walk_without(EngineRule::unbroadcast, total(plus(b, plus(c, c))), error));
  CHECK(error.find("a gradient of shape [3] reached an output of shape [1]") != std::string::npos);
  CHECK_FALSE(c.gradient().defined());
}

TEST_CASE("oldest first: gradients are still summed down to the shape of their inputs") {
  std::string error;
  const Variable a = leaf({2});
  CHECK_FALSE(walk_without(EngineRule::newest_first, total(times(constant(full({3}, 4.0, f64)), a)), error));
  CHECK(error == "");
  CHECK(elements(a.gradient()) == Numbers{12});
}
