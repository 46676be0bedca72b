// Chapter 9. Tests of a watched step: it moves what it should, and explains why where it does not move.
#include "apps/training/trainer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <new>

#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/sgd.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

// L = sum(exp(x)) with x = (0, 1), after its backward.
struct WatchedSum {
  Variable x = parameter(Tensor::of<float>({2}, {0, 1}), "x");
  optim::SGD sgd{Parameters{{"x", x}}};
  TrainingStep step{.program = "test", .number = 7, .rate = 0.5};
  double begun_with = 0;

  Variable loss() const { return sum(exp(x)); }
  void pass() {
    const Variable now = loss();
    backward(now);
    begun_with = now.item();
  }
  std::string error() {
    return small::error_of([&] { make_step(step, begun_with, sgd, [&] { return loss(); }); });
  }
};

// Makes what exp adds to its input's gradient infinite.
struct InfiniteExp final : Observer {
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t, Tensor& g) override {
    if (node.name == "exp") g.write<float>()[0] = INFINITY;
  }
};

}  // namespace

TEST_CASE("a watched step is the optimiser's, clipped or not") {
  WatchedSum free, clipped;
  free.pass();
  clipped.pass();
  clipped.step.clip = 0.1;
  CHECK(free.error() == "");
  CHECK(clipped.error() == "");
  CHECK(free.x.value().at(0) == doctest::Approx(-0.5));  // dL/dx = e^x = (1, e), the rate is 0.5
  CHECK(free.x.value().at(1) == doctest::Approx(1 - 0.5 * std::exp(1)));
  const double moved = std::hypot(clipped.x.value().at(0), clipped.x.value().at(1) - 1);
  CHECK(moved == doctest::Approx(0.5 * 0.1).epsilon(1e-5));
}

TEST_CASE("a loss that is not finite moves nothing, and the operation that made it is named") {
  for (const double clip : {0.0, 1.0}) {
    WatchedSum watched;
    watched.step.clip = clip;
    watched.x.mutable_value().write<float>()[1] = 1000;
    watched.pass();
    const std::string error = watched.error();
    CHECK(error.starts_with(
        "test: step 7 was not made, because a number is not finite; a smaller --rate or a longer --warmup "
        "may help\n"
        "train: the loss is not finite, so the optimiser's step must not be made\n"
        "exp (operation 1 of forward) gave infinity from finite inputs\n"));
    CHECK(watched.x.value().at(0) == 0);
    CHECK_FALSE(watched.x.gradient().defined());
  }
}

TEST_CASE("a gradient that is not finite moves nothing, and the operation that made it is named") {
  for (const double clip : {0.0, 1.0}) {
    WatchedSum watched;
    watched.step.clip = clip;
    InfiniteExp mistake;
    const ObserverScope scope(mistake);
    watched.pass();
    const std::string error = watched.error();
    CHECK(error.find("\ntrain: the gradient of parameter x is not finite") != std::string::npos);
    CHECK(error.find("\nexp (operation 2 of backward) gave infinity as gradient of its input 0") != std::string::npos);
    CHECK(watched.x.value().at(0) == 0);
    CHECK_FALSE(watched.x.gradient().defined());
  }
}

TEST_CASE("a loss that is not finite is reported even if no memory is left to name the operation") {
  WatchedSum watched;
  watched.pass();
  const auto no_memory = []() -> Variable { throw std::bad_alloc(); };
  CHECK(small::error_of([&] { make_step(watched.step, NAN, watched.sgd, no_memory); }) ==
        "test: step 7 was not made, because a number is not finite; a smaller --rate or a longer --warmup may help\n"
        "there is not enough memory to run the step once more and name the operation");
  CHECK(watched.x.value().at(0) == 0);
  CHECK_FALSE(watched.x.gradient().defined());
}

TEST_CASE("another mistake keeps its own words") {
  WatchedSum watched;
  watched.pass();
  watched.step.rate = -1;
  CHECK(watched.error() == "optimizer: the learning rate must be 0 or more and finite, got -1");
  CHECK(watched.x.value().at(0) == 0);
}
