// Chapter 2. Tests of what a failed walk undoes; whole walks that fail are in tests/promises/failed_walk_test.cpp.
#include "autograd/walk_undo.h"

#include <doctest/doctest.h>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("a parameter that was noted and added to loses its gradient; one that was only noted keeps it") {
  Variable added = leaf({1, 2}), noted = leaf({3, 4}), fresh = leaf({5, 6});
  backward(total(plus(added, noted)));
  WalkUndo undo;
  for (const Variable& x : {added, noted, fresh}) undo.note_leaf(edge_to(x), "test");
  add_in_place(added.mutable_gradient(), full({2}, 1.0, f64));
  fresh.mutable_gradient() = full({2}, 1.0, f64);
  undo.restore({}, nullptr);
  CHECK(error_of([&] { added.gradient(); }).find("is lost") != std::string::npos);
  CHECK(elements(noted.gradient()) == std::vector<double>{1, 1});
  CHECK_FALSE(fresh.gradient().defined());
}

TEST_CASE("nodes that wait and the one that failed lose their gradients; the one that failed is used up") {
  const Variable a = leaf({1, 2}), waiting = times(a, a), failed = total(waiting);
  waiting.node()->outputs[0].gradient = full({2}, 1.0, f64);
  waiting.node()->queued = true;
  failed.node()->outputs[0].gradient = full({}, 1.0, f64);
  const std::shared_ptr<Node> nodes[] = {waiting.node()};
  WalkUndo().restore(nodes, failed.node().get());
  CHECK_FALSE(waiting.node()->outputs[0].gradient.defined());
  CHECK_FALSE(waiting.node()->queued);
  CHECK_FALSE(waiting.node()->walked);
  CHECK_FALSE(failed.node()->outputs[0].gradient.defined());
  CHECK(failed.node()->walked);
  CHECK(failed.node()->inputs.empty());
}

TEST_CASE("noting a parameter checks its gradient, and leaves operations alone") {
  Variable a = leaf({1, 2}, "a");
  WalkUndo undo;
  undo.note_leaf({}, "test");
  undo.note_leaf(edge_to(times(a, a)), "test");
  a.mutable_gradient() = full({3}, 1.0, f64);
  CHECK(error_of([&] { undo.note_leaf(edge_to(a), "test"); }).find("mutable_gradient was given another tensor") !=
        std::string::npos);
}
