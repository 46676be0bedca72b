// Chapter 2. Tests of the observer: what it sees, and what it may change.
#include "autograd/observer.h"
#include "autograd/leaf.h"

#include <doctest/doctest.h>

#include <thread>

#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;
using Words = std::vector<std::string>;

namespace {

/// Writes down every call.
struct Diary : Observer {
  Words words;
  void forward_begins(std::string_view name, std::span<const Variable* const> inputs) override {
    words.push_back("begin " + std::string(name) + " " + std::to_string(inputs.size()));
  }
  void forward_ended(std::string_view name, std::span<const Variable* const>, std::span<const Tensor> y) override {
    words.push_back("end " + std::string(name) + " " + std::to_string(y.size()));
  }
  void backward_begins(const Node& node) override { words.push_back("back " + std::string(node.name)); }
  void backward_ended(const Node& node) override { words.push_back("done " + std::string(node.name)); }
  void leaf_reached(const Leaf& leaf) override { words.push_back("leaf " + leaf.label); }
};

/// Applies `change` to what operation `name` adds to its input number `input`.
struct Mutation : Observer {
  std::string name;
  size_t input;
  void (*change)(Tensor&);
  int calls = 0;
  Mutation(std::string name, size_t input, void (*change)(Tensor&))
      : name(std::move(name)), input(input), change(change) {}
  bool changes_contributions() const override { return true; }
  void contribution(const Node& node, size_t i, Tensor& g) override {
    ++calls;
    if (node.name == name && i == input) change(g);
  }
};

}  // namespace

TEST_CASE("the observer sees forward, backward and the leaves, in order") {
  const Variable a = leaf({1, 2}, "a"), b = leaf({3, 4}, "b");
  Diary diary;
  {
    const ObserverScope scope(diary);
    backward(total(times(a, b)));
  }
  backward(total(a));  // out of scope
  CHECK(diary.words == Words{"begin times 2", "end times 1", "begin total 1", "end total 1", "back total", "done total",
                             "back times", "done times", "leaf b", "leaf a"});
}

TEST_CASE("the observer sees the node of an operation that is recorded, after its forward") {
  struct Numbered : Diary {
    void recorded(const Node& node) override { words.push_back("node " + std::string(node.name)); }
  } diary;
  const ObserverScope scope(diary);
  const Variable a = leaf({1, 2}, "a"), y = times(a, a);
  {
    const NoGradient no_gradient;
    times(a, a);
  }
  times(constant(a.value()), constant(a.value()));
  CHECK(diary.words == Words{"begin times 2", "end times 1", "node times", "begin times 2", "end times 1",
                             "begin times 2", "end times 1"});
}

TEST_CASE("scopes nest, and each ends with its object") {
  Diary outer, inner;
  CHECK(observer() == nullptr);
  {
    const ObserverScope first(outer);
    {
      const ObserverScope second(inner);
      CHECK(observer() == &inner);
    }
    CHECK(observer() == &outer);
  }
  CHECK(observer() == nullptr);
}

TEST_CASE("an observer sees only the thread that set it") {
  Diary mine, of_other;
  const ObserverScope scope(mine);
  const Observer* met = &mine;
  std::thread([&] {
    met = observer();
    const ObserverScope other(of_other);
    backward(total(leaf({1})));
  }).join();
  CHECK(met == nullptr);
  CHECK(observer() == &mine);
  CHECK(mine.words == Words{});
  CHECK(of_other.words.size() == 5);
}

TEST_CASE("watching changes no gradient") {
  const Variable a = leaf({1, 2}), b = leaf({3, 4});
  const auto loss = [&] { return total(times(plus(a, b), times(a, a))); };
  backward(loss());
  const Tensor expected = a.gradient();
  for (const bool isolate : {false, true}) {
    Variable(a).clear_gradient();
    Diary diary;
    Mutation nothing("none", 0, [](Tensor&) {});
    const ObserverScope scope(isolate ? static_cast<Observer&>(nothing) : diary);
    backward(loss());
    CHECK(same_bits(a.gradient(), expected));
  }
}

TEST_CASE("a contribution may be replaced") {
  const Variable a = leaf({1, 2}), b = leaf({3, 4});
  Mutation doubled("times", 0, [](Tensor& g) { g = scale(g, 2.0); });
  const ObserverScope scope(doubled);
  backward(total(times(a, b)));
  CHECK(elements(a.gradient()) == Numbers{6, 8});
  CHECK(elements(b.gradient()) == Numbers{1, 2});
  CHECK(doubled.calls == 3);  // total's input and both of times
}

TEST_CASE("a contribution may be dropped") {
  const Variable a = leaf({1, 2}), b = leaf({3, 4});
  Mutation dropped("times", 1, [](Tensor& g) { g = Tensor(); });
  const ObserverScope scope(dropped);
  backward(total(times(a, b)));
  CHECK(elements(a.gradient()) == Numbers{3, 4});
  CHECK_FALSE(b.gradient().defined());
}

TEST_CASE("only the named use of a shared leaf is changed, and older gradients stay") {
  const Variable a = leaf({1, 2});
  backward(total(a));
  Mutation tenfold("plus", 1, [](Tensor& g) { g = scale(g, 10.0); });
  const ObserverScope scope(tenfold);
  backward(total(plus(a, a)));
  CHECK(elements(a.gradient()) == Numbers{12, 12});
}

TEST_CASE("contributions written through into() are seen as well") {
  const Variable a = parameter(full({1, 2}, 2.0, f64)), b = parameter(full({2, 1}, 3.0, f64));
  Mutation negated("product", 0, [](Tensor& g) { g = scale(g, -1.0); });
  const ObserverScope scope(negated);
  backward(total(product(a, b)));
  CHECK(elements(a.gradient()) == Numbers{-3, -3});
  CHECK(elements(b.gradient()) == Numbers{2, 2});
}
