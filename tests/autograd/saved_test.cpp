// Chapter 2. Tests of Saved: a saved tensor that was changed is an error and not a wrong gradient.
#include "autograd/saved.h"

#include <doctest/doctest.h>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("a saved tensor comes back as it was") {
  const Tensor x = full({2}, 1.0);
  const Saved saved = x;
  CHECK(saved.defined());
  CHECK(saved.get().shares_memory_with(x));
  const Tensor& again = saved;
  CHECK(same_bits(again, x));
}

TEST_CASE("an undefined tensor can be saved, too") {
  const Saved nothing, missing = Tensor();
  CHECK_FALSE(nothing.defined());
  CHECK_FALSE(missing.get().defined());
}

TEST_CASE("a change in place makes the saved tensor an error") {
  Tensor x = full({2}, 1.0);
  const Saved saved = x;
  scale_in_place(x, 2.0);
  const std::string message = error_of([&] { saved.get(); });
  CHECK(message.starts_with(
      "saved tensor: a tensor of shape [2] that backward needs was changed in place after forward"));
}

TEST_CASE("a change through a view counts, since versions belong to the memory") {
  Tensor x = full({4, 2}, 1.0);
  const Saved saved = x.reshape({8});
  Tensor view = x.rows(3, 4);
  fill(view, 0.0);
  CHECK_THROWS_AS(saved.get(), Error);
}

TEST_CASE("reading, copying and cloning are not changes") {
  const Tensor x = full({2}, 1.0);
  const Saved saved = x;
  Tensor copy = x.clone();
  fill(copy, 3.0);
  CHECK(x.at(1) == 1.0);
  CHECK(add(x, x).at(0) == 2.0);
  CHECK_NOTHROW(saved.get());
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
