// Chapter 2. Tests of the engine: the chain rule by hand, shared parts, repeated walks and their errors, saved tensors.
#include <doctest/doctest.h>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

TEST_CASE("a * b + c by hand") {
  const Variable a = leaf({2}), b = leaf({3}), c = leaf({4});
  const Variable y = plus(times(a, b), c);
  CHECK(y.item() == 10.0);
  backward(y);
  CHECK(a.gradient().item() == 3.0);
  CHECK(b.gradient().item() == 2.0);
  CHECK(c.gradient().item() == 1.0);
}

TEST_CASE("a shared subexpression is visited once, after everything computed from it") {
  const Variable a = leaf({2});
  const Variable h = times(a, a);                     // a^2
  const Variable y = plus(times(h, h), times(h, a));  // a^4 + a^3
  backward(y);
  CHECK(a.gradient().item() == 4 * 8.0 + 3 * 4.0);
}

TEST_CASE("a walk that keeps the tape can be repeated: the rows of a Jacobian from one forward") {
  Variable a = leaf({1, 2, 3}), b = leaf({4, 5, 6});
  const Variable y = times(plus(a, b), b);  // dy_i/da_i = b_i, dy_i/db_i = a_i + 2 b_i
  for (i64 row = 0; row < 3; ++row) {
    Tensor dy = full({3}, 0.0, f64);
    dy.set(row, 1);
    a.clear_gradient();
    b.clear_gradient();
    backward(y, dy, {.keep = row < 2});  // the last one frees the tape
    Numbers of_a(3, 0), of_b(3, 0);
    of_a[static_cast<size_t>(row)] = b.value().at(row);
    of_b[static_cast<size_t>(row)] = a.value().at(row) + 2 * b.value().at(row);
    CHECK(elements(a.gradient()) == of_a);
    CHECK(elements(b.gradient()) == of_b);
  }
  CHECK(error_of([&] { backward(y, full({3}, 1.0, f64)); }).find("this tape was walked before") != std::string::npos);
}

TEST_CASE("backward from any y takes dL/dy of its shape and dtype") {
  const Variable a = leaf({1, 2}), b = leaf({3, 4});
  backward(times(a, b), Tensor::of<double>({2}, {10, 100}));
  CHECK(elements(a.gradient()) == Numbers{30, 400});
  const Variable y = plus(a, b);
  CHECK(error_of([&] { backward(y, full({3}, 1.0, f64)); }) == "backward: dL/dy is f64 [3], y is f64 [2]");
  CHECK(error_of([&] { backward(y, full({2}, 1.0, f32)); }) == "backward: dL/dy is f32 [2], y is f64 [2]");
}

TEST_CASE("a loss has one element and leads back to a parameter") {
  const Variable a = leaf({1, 2});
  CHECK(error_of([&] { backward(plus(a, a)); }) ==
        "backward: needs a loss of one element, got shape [2]; give dL/dy for anything else");
  CHECK(error_of([&] { backward(constant(full({1}, 1.0))); }).find("nothing here wants a gradient") !=
        std::string::npos);
  CHECK(error_of([&] { backward(Variable()); }) == "backward: the loss is not defined");
  const auto unrecorded = [&] {
    const NoGradient no_gradient;
    return total(a);
  };
  CHECK(error_of([&] { backward(unrecorded()); }).find("no-gradient mode") != std::string::npos);
}

TEST_CASE("a parameter may itself be the loss") {
  const Variable a = leaf({5});
  backward(a);
  backward(a);
  CHECK(a.gradient().item() == 2.0);
}

TEST_CASE("a second walk over the same tape is an error that says so") {
  const Variable a = leaf({1, 2});
  const Variable loss = total(times(a, a));
  backward(loss);
  CHECK(error_of([&] { backward(loss); }) ==
        "backward: this tape was walked before (at total); its saved values are gone, so compute the loss again");
  CHECK(elements(a.gradient()) == Numbers{2, 4});
}

TEST_CASE("a second loss on a walked part of the tape is an error too, and harms no later tape") {
  const Variable a = leaf({1, 2});
  const Variable shared = times(a, a);
  backward(total(shared));
  const Variable second = total(plus(shared, a));
  CHECK(error_of([&] { backward(second); }).find("walked before (at times)") != std::string::npos);
  const Variable fresh = leaf({1, 2});
  backward(total(times(fresh, fresh)));
  CHECK(elements(fresh.gradient()) == Numbers{2, 4});
}

TEST_CASE("saved tensors are let go right after the operation's backward") {
  Tensor x = full({2}, 3.0, f64);
  const Variable w = leaf({1, 2});
  const Variable loss = total(times(constant(x), w));
  CHECK_FALSE(x.sole_owner());
  backward(loss);
  CHECK(x.sole_owner());
}

TEST_CASE("gradients inside the tape are gone after the walk") {
  const Variable a = leaf({1, 2});
  const Variable y = times(a, a);
  backward(total(y));
  CHECK_FALSE(y.node()->outputs[0].gradient.defined());
  CHECK(y.node()->inputs.empty());
}

TEST_CASE("an output that leads nowhere has no dy") {
  const Variable a = leaf({1, 2, 3, 4});
  const auto [first, second] = halves(a);
  CHECK(elements(second.value()) == Numbers{3, 4});
  backward(total(times(second, second)));
  CHECK(elements(a.gradient()) == Numbers{0, 0, 6, 8});
}

TEST_CASE("several outputs of one node are collected before its backward") {
  const Variable a = leaf({1, 2, 3, 4});
  const auto [first, second] = halves(a);
  backward(total(times(first, second)));
  CHECK(elements(a.gradient()) == Numbers{3, 4, 1, 2});
}

TEST_CASE("a saved tensor comes back until its memory is changed, through whichever view") {
  const Tensor x = full({4, 2}, 1.0);
  const Saved saved = x.reshape({8}), nothing, missing = Tensor();
  Tensor copy = x.clone(), view = x.rows(3, 4);
  fill(copy, 3.0);
  CHECK(saved.defined());
  CHECK(saved.get().shares_memory_with(x));
  CHECK_FALSE(nothing.defined());
  CHECK_FALSE(missing.get().defined());
  fill(view, 0.0);
  CHECK(error_of([&] {
          saved.get();
        }).starts_with("saved tensor: a tensor of shape [8] that backward needs was changed in place after forward"));
}

TEST_CASE("backward names the operation whose saved tensor went stale") {
  Variable a = leaf({1, 2});
  const Variable loss = total(times(a, a));
  scale_in_place(a.mutable_value(), 2.0);
  const std::string message = error_of([&] { backward(loss); });
  CHECK(message.starts_with("times (backward): saved tensor: a tensor of shape [2]"));
  CHECK(message.find("changed in place") != std::string::npos);
}

TEST_CASE("an operation that saved nothing allows changes in place") {
  Variable a = leaf({1, 2});
  const Variable loss = total(plus(a, a));
  scale_in_place(a.mutable_value(), 2.0);
  CHECK_NOTHROW(backward(loss));
}
