// Chapter 8. Promise 26: a backward pass that fails leaves nothing behind that could make a later gradient wrong.
#include <doctest/doctest.h>

#include <new>

#include "autograd/observer.h"
#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

namespace {

// y = x; backward writes one element of a gradient that it should write whole, and fails.
struct HalfWritten {
  static constexpr std::string_view name = "half_written";
  Tensor forward(const Tensor& x) { return x.clone(); }
  void backward(const Tensor&, Grads& dx) {
    dx.into(0).buffer.write<double>()[0] = 1000;
    throw std::bad_alloc();
  }
};
Variable half_written(const Variable& x) { return apply(HalfWritten{}, x); }

// Lets `left` events of a walk pass, and throws at the next one.
struct ThrowsAt : Observer {
  int left;
  bool isolate;  // sees each contribution by itself
  bool error;    // throws an Error, else std::bad_alloc
  ThrowsAt(int left, bool isolate, bool error) : left(left), isolate(isolate), error(error) {}
  void event() {
    if (left-- > 0) return;
    if (error) fail("observer", "stops here");
    throw std::bad_alloc();
  }
  bool changes_contributions() const override { return isolate; }
  void backward_begins(const Node&) override { event(); }
  void contribution(const Node&, size_t, Tensor&) override { event(); }
  void backward_ended(const Node&) override { event(); }
  void leaf_reached(const Leaf&) override { event(); }
};

// Two losses over one trunk.
struct Trunk {
  Variable a = leaf({1, 2, 3, 4}, "a"), b = leaf({5, 6, 7, 8}, "b"), c = leaf({2, 3}, "c");
  Variable product_ab, first, second, shared;
  Trunk() {
    product_ab = times(a, b);
    const auto parts = halves(product_ab);
    first = parts[0];
    second = parts[1];
    shared = plus(times(first, second), c);
  }
  Variable one() const { return plus(total(times(shared, first)), total(plus(product_ab, a))); }
  Variable other() const { return plus(total(times(shared, second)), total(times(product_ab, b))); }
  std::vector<Variable> leaves() const { return {a, b, c}; }
};

std::vector<Numbers> leaf_gradients(const Trunk& trunk) {
  std::vector<Numbers> result;
  for (const Variable& x : trunk.leaves())
    result.push_back(x.gradient().defined() ? elements(x.gradient()) : Numbers{});
  return result;
}

}  // namespace

TEST_CASE("promise 26: a failed walk leaves nothing in a trunk that it shares with the next loss") {
  const Variable a = leaf({3}), b = leaf({5});
  const Variable trunk = times(a, b), scaled = times(trunk, b), failing = half_written(scaled);
  const Variable twice = plus(trunk, trunk);  // newer than `failing`, so it is visited first
  CHECK_THROWS_AS(backward(plus(twice, failing)), std::bad_alloc);
  CHECK_FALSE(trunk.node()->outputs[0].gradient.defined());
  CHECK_FALSE(scaled.node()->outputs[0].gradient.defined());
  CHECK_FALSE(a.gradient().defined());
  CHECK_FALSE(b.gradient().defined());
  // dL/d(trunk) = 3 + b = 8; with what the failed walk had added, it would be 10 and more.
  backward(plus(plus(plus(trunk, trunk), trunk), scaled));
  CHECK(a.gradient().item() == 40.0);  // 8 b
  CHECK(b.gradient().item() == 39.0);  // 8 a + trunk
}

namespace {

// Walks from `loss` and throws at event number `event`, counted from 0: an Error if that is even, else another
// exception. Returns false if the walk ended before it.
bool fails_at(int event, bool isolate, const Variable& loss) {
  try {
    ThrowsAt observer(event, isolate, event % 2 == 0);
    const ObserverScope scope(observer);
    backward(loss);
  } catch (const std::exception&) { return true; }
  return false;
}

// Over all failed walks: how many trunks were reused and how many were refused, and how many gradients were lost.
struct AfterFailures {
  int reused = 0, refused = 0, lost = 0;

  // A gradient is what it was before, or reading it says that it is lost.
  void check_gradients(const Trunk& trunk, const std::vector<Numbers>& before, bool summed) {
    for (size_t i = 0; i < before.size(); ++i) {
      Variable x = trunk.leaves()[i];
      const std::string error = error_of([&] { x.gradient(); });
      if (error.empty()) {
        CHECK((x.gradient().defined() ? elements(x.gradient()) : Numbers{}) == before[i]);
      } else {
        CHECK(summed);
        CHECK(error.find("the gradient of parameter " + x.name() + " is lost") != std::string::npos);
        ++lost;
      }
      x.clear_gradient();
    }
  }
  // The other loss has the right gradients, or says that the trunk was walked, and leaves none.
  void check_other_loss(const Trunk& trunk, const std::vector<Numbers>& expected) {
    const std::string error = error_of([&] { backward(trunk.other()); });
    if (error.empty()) {
      CHECK(leaf_gradients(trunk) == expected);
      ++reused;
    } else {
      CHECK(error.find("walked before") != std::string::npos);
      CHECK(leaf_gradients(trunk) == std::vector<Numbers>(3));
      ++refused;
    }
  }
};

}  // namespace

TEST_CASE("promise 26: wherever a walk fails, the next loss has the right gradient or says that the tape was walked") {
  Trunk right;
  backward(right.other());
  const std::vector<Numbers> expected = leaf_gradients(right);
  AfterFailures after;
  for (const bool isolate : {false, true}) {
    for (const bool summed : {false, true}) {
      for (int event = 0;; ++event) {
        CAPTURE(isolate);
        CAPTURE(summed);
        CAPTURE(event);
        const Trunk trunk;
        if (summed) backward(total(plus(trunk.a, trunk.b)));
        const std::vector<Numbers> before = leaf_gradients(trunk);
        const Variable loss = trunk.one();
        if (!fails_at(event, isolate, loss)) break;
        after.check_gradients(trunk, before, summed);
        CHECK(error_of([&] { backward(loss); }).find("walked before") != std::string::npos);
        after.check_other_loss(trunk, expected);
      }
    }
  }
  CHECK(after.reused > 4);
  CHECK(after.refused > 4);
  CHECK(after.lost > 4);
}

TEST_CASE("a sum of gradients that a failed walk added to is an error to read and to walk to, until it is cleared") {
  Variable a = leaf({1, 2}, "a"), b = leaf({3, 4}, "b");
  const auto loss = [&] { return total(times(a, b)); };
  backward(loss());
  CHECK_THROWS_AS(backward(total(half_written(a))), std::bad_alloc);
  const std::string incomplete =
      "the gradient of parameter a is lost, since a backward pass that had added to it failed; clear all "
      "gradients and compute the step again";
  CHECK(error_of([&] { a.gradient(); }) == "gradient: " + incomplete);
  CHECK(error_of([&] { backward(loss()); }) == "backward: " + incomplete);
  CHECK(error_of([&] { backward(a, full({2}, 1.0, f64)); }) == "backward: " + incomplete);
  CHECK(elements(b.gradient()) == Numbers{1, 2});
  a.clear_gradient();
  b.clear_gradient();
  backward(loss());
  CHECK(elements(a.gradient()) == Numbers{3, 4});
  CHECK(elements(b.gradient()) == Numbers{1, 2});
}

TEST_CASE("a walk that fails before it adds to a parameter leaves its gradient") {
  const Variable a = leaf({1, 2}, "a");
  backward(total(a));
  Tensor saved = full({2}, 3.0, f64);
  const Variable loss = total(times(a, constant(saved)));
  fill(saved, 4.0);
  CHECK(error_of([&] { backward(loss); }).find("changed in place after forward") != std::string::npos);
  CHECK(elements(a.gradient()) == Numbers{1, 1});
}

TEST_CASE("an operation that fails forward leaves the modes of the thread as they were, and nothing on its inputs") {
  const Variable a = leaf({1, 2}), b = leaf({1, 2, 3});
  ThrowsAt observer(1000, false, false);
  CHECK_THROWS_AS(
      [&] {
        const NoGradient no_gradient;
        const ObserverScope scope(observer);
        plus(a, b);
      }(),
      Error);
  CHECK(gradients_are_recorded());
  CHECK(orrery::observer() == nullptr);
  CHECK_THROWS_AS(plus(a, b), Error);
  CHECK(a.node().use_count() == 1);
}
