// Chapter 2. Tests of Variable: constants, parameters, names, and the mode without gradients.
#include "autograd/variable.h"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

TEST_CASE("a constant wants no gradient, a parameter does") {
  const Variable c = constant(full({2}, 1.0)), p = parameter(full({2}, 1.0), "p"), none;
  CHECK_FALSE(c.wants_gradient());
  CHECK_FALSE(c.is_leaf());
  CHECK(p.wants_gradient());
  CHECK(p.is_leaf());
  CHECK_FALSE(none.defined());
  CHECK_FALSE(none.wants_gradient());
  CHECK_FALSE(p.gradient().defined());
  CHECK_FALSE(plus(p, c).is_leaf());
  CHECK(plus(p, c).wants_gradient());
  CHECK_FALSE(plus(c, c).wants_gradient());
}

TEST_CASE("token ids are neither constants nor parameters") {
  CHECK(error_of([] { constant(arange(3)); }) == "constant: needs a tensor of f32 or f64");
  CHECK(error_of([] { constant(Tensor()); }) == "constant: needs a tensor of f32 or f64");
  CHECK(error_of([] { parameter(arange(3)); }) == "parameter: needs a tensor of f32 or f64");
  CHECK(error_of([] { parameter(Tensor()); }) == "parameter: needs a tensor of f32 or f64");
}

TEST_CASE("copies of a parameter share its gradient and its name") {
  Variable p = leaf({1, 2}, "first");
  Variable copy = p;
  backward(total(p));
  CHECK(elements(copy.gradient()) == Numbers{1, 1});
  copy.set_name("second");
  CHECK(p.name() == "second");
  copy.clear_gradient();
  CHECK_FALSE(p.gradient().defined());
}

TEST_CASE("a value changed in place is seen by every copy") {
  Variable p = leaf({1, 2});
  const Variable copy = p;
  scale_in_place(p.mutable_value(), 3.0);
  CHECK(elements(copy.value()) == Numbers{3, 6});
}

TEST_CASE("replace_value changes shape and dtype and forgets the gradient") {
  Variable p = leaf({1, 2}, "p");
  backward(total(p));
  p.replace_value(full({2, 3}, 1.0, f32));
  CHECK_FALSE(p.gradient().defined());
  CHECK(p.name() == "p");
  backward(total(p));
  CHECK(p.gradient().shape() == Shape{2, 3});
  CHECK(p.gradient().dtype() == f32);
}

TEST_CASE("replace_value between forward and backward is an error that names the parameter") {
  for (const i64 now : {1, 2, 3, 4}) {
    Variable p = leaf({1, 2, 3}, "p");
    const Variable squared = total(times(p, p)), summed = total(p), broadcast = total(plus(p, leaf({1}, "one")));
    p.replace_value(full({now}, 1.0, f64));
    for (const Variable& loss : {squared, summed, broadcast}) {
      const std::string error = error_of([&] { backward(loss); });
      CHECK(error.find("backward: ") == 0);
      CHECK(
          error.find(" read parameter p before another value replaced it (replace_value, nn::to); compute the loss") !=
          std::string::npos);
      CHECK_FALSE(p.gradient().defined());
    }
    backward(total(p));
    CHECK(p.gradient().shape() == Shape{now});
  }
}

TEST_CASE("a copy made before replace_value remains the old parameter, and no gradient reaches it any more") {
  Variable p = leaf({1, 2, 3}, "p");
  p.set_frozen(true);
  const Variable copy = p;
  p.replace_value(full({1}, 1.0, f64));
  CHECK(copy.is_replaced());
  CHECK_FALSE(p.is_replaced());
  CHECK(p.is_frozen());
  CHECK(p.name() == "p");
  CHECK(total(copy).item() == 6.0);
  p.set_frozen(false);
  Variable old = copy;
  old.set_frozen(false);
  CHECK(error_of([&] { backward(total(old)); }).find("total read parameter p before another value") !=
        std::string::npos);
  CHECK(error_of([&] { backward(copy, full({3}, 1.0, f64)); }).find("this walk read parameter p before") !=
        std::string::npos);
  CHECK(error_of([&] { p.replace_value(Tensor()); }) == "replace_value: needs a tensor of f32 or f64");
  CHECK(error_of([&] { p.replace_value(arange(3)); }) == "replace_value: needs a tensor of f32 or f64");
  CHECK_FALSE(p.is_replaced());
}

TEST_CASE("another tensor put into mutable_value is an error when it is recorded") {
  Variable p = leaf({1}, "p");
  p.mutable_value() = full({4}, 1.0, f64);
  CHECK(error_of([&] { total(p); }) ==
        "total: parameter p is f64 [1], but mutable_value was given f64 [4]; replace_value gives a parameter another "
        "shape or dtype\n  input 0: [4]  from parameter p");
  p.mutable_value() = full({1}, 1.0, f32);
  CHECK(error_of([&] { total(p); }).find("parameter p is f64 [1], but mutable_value was given f32 [1]") !=
        std::string::npos);
  Variable y = plus(leaf({1, 2}), leaf({3, 4}));
  y.mutable_value() = full({3}, 1.0, f64);
  CHECK(error_of([&] { total(y); }).find("plus is f64 [2], but mutable_value was given f64 [3]") != std::string::npos);
}

TEST_CASE("another tensor put into mutable_gradient is an error of the next walk") {
  Variable p = leaf({1, 2, 3}, "p");
  for (const Tensor& wrong : {full({1}, 1.0, f64), full({3}, 1.0, f32)}) {
    p.mutable_gradient() = wrong;
    const std::string error = error_of([&] { backward(total(p)); });
    CHECK(error.find("backward: parameter p is f64 [3], its gradient ") == 0);
    CHECK(error.find("mutable_gradient was given another tensor") != std::string::npos);
  }
}

TEST_CASE("only parameters have a gradient, a name and a value to replace") {
  Variable y = total(leaf({1, 2}));
  CHECK(error_of([&] { y.replace_value(full({}, 1.0, f64)); }) ==
        "replace_value: only a parameter can be given another value");
  CHECK(error_of([&] { y.gradient(); }) == "gradient: only a parameter has one");
  CHECK(error_of([&] { y.name(); }) == "name: only a parameter has one");
  CHECK(error_of([&] { constant(full({1}, 1.0)).gradient(); }) == "gradient: only a parameter has one");
}

TEST_CASE("a detached value is a constant of the same memory") {
  const Variable p = leaf({1, 2, 3});
  const Variable y = plus(p, p), cut = detach(y);
  CHECK_FALSE(cut.wants_gradient());
  CHECK(cut.value().shares_memory_with(y.value()));
  backward(total(times(cut, p)));
  CHECK(elements(p.gradient()) == Numbers{2, 4, 6});
}

TEST_CASE("without gradients nothing is recorded, and the mode nests and ends with its scope") {
  const Variable p = leaf({1, 2});
  CHECK(gradients_are_recorded());
  {
    const NoGradient outer;
    CHECK_FALSE(plus(p, p).wants_gradient());
    {
      const NoGradient inner;
      CHECK_FALSE(gradients_are_recorded());
    }
    CHECK_FALSE(gradients_are_recorded());
  }
  CHECK(gradients_are_recorded());
  CHECK(plus(p, p).wants_gradient());
}

TEST_CASE("without gradients an operation keeps none of its inputs") {
  Tensor x = full({4}, 2.0, f64);
  const Variable p = parameter(full({4}, 3.0, f64));
  Variable y;
  {
    const NoGradient no_gradient;
    y = times(constant(x), p);
  }
  CHECK(x.sole_owner());
  y = times(constant(x), p);
  CHECK_FALSE(x.sole_owner());
}

TEST_CASE("a variable prints its value and its origin") {
  std::ostringstream text;
  text << plus(leaf({1, 2}), leaf({3, 4})) << '\n'
       << leaf({1}, "w") << '\n'
       << constant(full({1}, 5.0)) << '\n'
       << Variable();
  CHECK(text.str() ==
        "[4, 6]  f64 [2]  from plus\n[1]  f64 [1]  from parameter w\n[5]  f32 [1]  from a constant\n(no variable)");
}

TEST_CASE("a frozen parameter is a constant to what is recorded from now on, in every copy, until it is unfrozen") {
  Variable p = leaf({1, 2}, "p");
  const Variable copy = p, q = leaf({3, 4}, "q");
  backward(total(p));
  const Variable before = total(times(p, q));
  p.set_frozen(true);
  CHECK(copy.is_frozen());
  CHECK(copy.is_leaf());
  CHECK_FALSE(copy.wants_gradient());
  CHECK_FALSE(p.gradient().defined());
  const Variable y = plus(copy, copy), z = times(p, q);
  CHECK_FALSE(y.wants_gradient());
  CHECK(error_of([&] { backward(total(y)); }) ==
        "backward: nothing here wants a gradient: no parameter led to this value, all that did are frozen, or it was "
        "computed in no-gradient mode");
  backward(total(z));
  CHECK(elements(q.gradient()) == Numbers{1, 2});
  CHECK_FALSE(p.gradient().defined());
  backward(before);  // recorded when p was not frozen
  p.set_frozen(false);
  CHECK_FALSE(p.gradient().defined());
  backward(total(times(copy, q)));
  CHECK(elements(p.gradient()) == Numbers{3, 4});
  p.set_frozen(false);  // changes nothing
  CHECK(p.gradient().defined());
  Variable c = constant(full({1}, 1.0));
  CHECK_FALSE(c.is_frozen());
  CHECK(error_of([&] { c.set_frozen(true); }) == "set_frozen: only a parameter can be frozen");
}
