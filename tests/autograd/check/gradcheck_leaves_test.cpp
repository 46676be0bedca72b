// Chapter 3. Tests of what the gradient checker holds on to.
#include "autograd/check/gradcheck_leaves.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"

using namespace orrery;

TEST_CASE("a held leaf gets its bits and its gradient back") {
  Variable x = parameter(Tensor::of<double>({2}, {0.1, -0.0}), "x");
  x.mutable_gradient() = Tensor::of<double>({2}, {5, 6});
  const Tensor before = x.value().clone();
  {
    CheckedLeaf checked({"x", x});
    CHECK_FALSE(x.gradient().defined());
    fill(checked.leaf.mutable_value(), 7.0);
    CHECK(x.value().at(0) == 7);
    checked.restore();
    CHECK(same_bits(x.value(), before));
    fill(checked.leaf.mutable_value(), 8.0);
  }
  CHECK(same_bits(x.value(), before));
  CHECK(x.gradient().at(1) == 6);
}

TEST_CASE("a leaf named twice is held once; what is no f64 parameter is refused") {
  const Variable x = parameter(zeros({2}, f64));
  CHECK(checked_leaves({{"a", x}, {"b", x}}).size() == 1);
  CHECK_THROWS_WITH(checked_leaves({{"c", constant(zeros({2}, f64))}}), "gradcheck: c is not a parameter");
  CHECK_THROWS_AS(checked_leaves({{"d", parameter(zeros({2}, f32))}}), Error);
}

TEST_CASE("reached leaves are collected, and the observer before is still told") {
  struct Counter final : Observer {
    int forwards = 0, backwards = 0, leaves = 0;
    void forward_ended(std::string_view, std::span<const Variable* const>, std::span<const Tensor>) override {
      ++forwards;
    }
    void backward_ended(const Node&) override { ++backwards; }
    void leaf_reached(const Leaf&) override { ++leaves; }
  } counter;
  const Variable x = parameter(Tensor::of<double>({1}, {3})), unused = parameter(Tensor::of<double>({1}, {4}));
  const ObserverScope outer(counter);
  ReachedLeaves reached;
  {
    const ObserverScope inner(reached);
    backward(exp(x * x));
  }
  CHECK(reached.leaves == std::vector<const Leaf*>{static_cast<const Leaf*>(x.node().get())});
  CHECK(counter.forwards == 2);
  CHECK(counter.backwards == 2);
  CHECK(counter.leaves == 1);
}

TEST_CASE("places are written as one indexes") {
  CHECK(place("w", {4, 5}, 7) == "w[1, 2]");
  CHECK(place("s", {}, 0) == "s[]");
}
