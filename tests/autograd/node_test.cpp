// Chapter 2. Tests of nodes: numbers, long chains, and who owns the memory of a gradient.
#include "autograd/node.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "autograd/observer.h"
#include "core/machine/memory.h"
#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

namespace {
constexpr int long_chain = 1'000'000;

Variable chain(const Variable& start, int length) {
  const Variable zero = constant(zeros({1}, f64));
  Variable x = start;
  for (int i = 0; i < length; ++i) x = plus(x, zero);
  return x;
}

struct Adopted {
  static constexpr std::string_view name = "adopted";
  const double** address;
  Tensor forward(const Tensor& x) { return x.clone(); }
  void backward(const Tensor& dy, Grads& dx) {
    Tensor g = scale(dy, 2.0);
    *address = g.data<double>();
    dx.add(0, std::move(g));
  }
};

struct Wrong {
  static constexpr std::string_view name = "wrong";
  Tensor forward(const Tensor& x) { return x.clone(); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy.to(f32)); }
};

}  // namespace

TEST_CASE("nodes are numbered in the order they are made") {
  const Variable a = leaf({1}), b = leaf({2});
  const Variable y = plus(a, b), z = plus(y, y);
  CHECK(a.node()->number < b.node()->number);
  CHECK(b.node()->number < y.node()->number);
  CHECK(y.node()->number < z.node()->number);
  CHECK(y.node()->name == "plus");
}

TEST_CASE("slow: a chain of a million nodes walks backwards") {
  const Variable p = leaf({2});
  backward(chain(p, long_chain));
  CHECK(elements(p.gradient()) == Numbers{1});
}

TEST_CASE("slow: a chain of a million nodes is freed without backward") {
  const Variable p = leaf({2});
  const i64 before = memory_counters().live_bytes;
  std::weak_ptr<Node> last, first;
  {
    const Variable y = plus(p, p);
    const Variable end = chain(y, long_chain);
    first = y.node();
    last = end.node();
  }
  CHECK(first.expired());
  CHECK(last.expired());
  first.reset();
  last.reset();  // who can ask whether a node lives keeps its memory
  CHECK(memory_counters().live_bytes == before);
  CHECK_FALSE(p.gradient().defined());
}

TEST_CASE("freeing a chain spares the part that somebody still holds") {
  const Variable p = leaf({2});
  Variable middle;
  {
    middle = chain(p, 100);
    const Variable end = chain(middle, 100);
    CHECK(end.item() == 2.0);
  }
  backward(middle);
  CHECK(elements(p.gradient()) == Numbers{1});
}

TEST_CASE("an activation dies as soon as neither user nor operation needs it") {
  const Variable p = leaf({1, 2});
  std::weak_ptr<Node> node;
  Tensor value;
  Variable sum_of;
  {
    const Variable y = plus(p, p);
    value = y.value();
    node = y.node();
    sum_of = plus(y, y);  // saves nothing
  }
  CHECK(value.sole_owner());
  CHECK_FALSE(node.expired());
}

TEST_CASE("two leaves never share the memory of their gradients") {
  Variable x = leaf({1, 2}), y = leaf({3, 4});
  backward(total(plus(x, y)));
  CHECK_FALSE(x.gradient().shares_memory_with(y.gradient()));
  scale_in_place(x.mutable_gradient(), 10.0);
  CHECK(elements(x.gradient()) == Numbers{10, 10});
  CHECK(elements(y.gradient()) == Numbers{1, 1});
}

TEST_CASE("a leaf's gradient shares no memory with the dL/dy that the caller gave") {
  Variable x = leaf({1, 2});
  const Tensor dy = full({2}, 1.0, f64);
  backward(plus(x, x), dy);
  backward(x, dy);
  scale_in_place(x.mutable_gradient(), 5.0);
  CHECK(elements(x.gradient()) == Numbers{15, 15});
  CHECK(elements(dy) == Numbers{1, 1});
}

TEST_CASE("a gradient that the user holds is not changed by later accumulation") {
  const Variable x = leaf({1, 2}), w = parameter(full({2, 2}, 1.0, f64));
  const auto once = [&] {
    backward(total(product(parameter(x.value().reshape({1, 2})), w)));
    backward(total(plus(x, x)));
  };
  once();
  const Tensor held_x = x.gradient(), held_w = w.gradient();
  once();
  CHECK(elements(held_x) == Numbers{2, 2});
  CHECK(elements(x.gradient()) == Numbers{4, 4});
  CHECK(elements(held_w) == Numbers{1, 1, 2, 2});
  CHECK(elements(w.gradient()) == Numbers{2, 2, 4, 4});
}

TEST_CASE("a temporary that only the engine holds becomes the leaf's gradient without a copy") {
  const double* address = nullptr;
  const Variable x = leaf({1, 2});
  backward(total(apply(Adopted{&address}, x)));
  CHECK(elements(x.gradient()) == Numbers{2, 2});
  CHECK(x.gradient().data<double>() == address);
}

TEST_CASE("what two operations write through into() is added up") {
  const Variable a = parameter(full({2, 3}, 2.0, f64)), b = parameter(full({3, 1}, 3.0, f64));
  backward(plus(total(product(a, b)), total(product(a, b))));
  CHECK(elements(a.gradient()) == Numbers{6, 6, 6, 6, 6, 6});
  CHECK(elements(b.gradient()) == Numbers{8, 8, 8});
}

TEST_CASE("gradients are summed down to the shape that was broadcast") {
  const Variable row = leaf({1, 2, 3}), column = parameter(full({2, 1}, 1.0, f64)),
                 scalar = parameter(full({}, 2.0, f64));
  backward(total(plus(plus(row, column), scalar)));
  CHECK(elements(row.gradient()) == Numbers{2, 2, 2});
  CHECK(column.gradient().shape() == Shape{2, 1});
  CHECK(elements(column.gradient()) == Numbers{3, 3});
  CHECK(scalar.gradient().shape() == Shape{});
  CHECK(scalar.gradient().item() == 6.0);
}

namespace {

struct AddsThreeTimes {
  static constexpr std::string_view name = "adds_three_times";
  Tensor forward(const Tensor& x) { return broadcast_to(x, {2, 3}); }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    dx.add(0, dy);
    add_in_place(dx.into(0).buffer, full({3}, 100.0, f64));
  }
};

struct BroadcastThenInto {
  static constexpr std::string_view name = "broadcast_then_into";
  Tensor forward(const Tensor& x) { return broadcast_to(x, {2, 3}); }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);
    add_in_place(dx.into(0).buffer, full({3}, 100.0, f64));
  }
};

struct Isolating : Observer {
  std::vector<Shape> shapes;
  bool changes_contributions() const override { return true; }
  void contribution(const Node&, size_t, Tensor& g) override { shapes.push_back(g.shape()); }
};

}  // namespace

TEST_CASE("isolated contributions are summed down too, however many an operation makes of one input") {
  for (const bool isolate : {false, true}) {
    CAPTURE(isolate);
    Isolating observer;
    const Variable x = leaf({1, 2, 3}), y = leaf({1, 2, 3});
    const Variable loss = plus(total(apply(AddsThreeTimes{}, x)), total(apply(BroadcastThenInto{}, y)));
    if (isolate) {
      const ObserverScope scope(observer);
      backward(loss);
      CHECK(std::find(observer.shapes.begin(), observer.shapes.end(), Shape{2, 3}) != observer.shapes.end());
      CHECK(std::count(observer.shapes.begin(), observer.shapes.end(), Shape{3}) == 2);
    } else {
      backward(loss);
    }
    CHECK(elements(x.gradient()) == Numbers{104, 104, 104});
    CHECK(elements(y.gradient()) == Numbers{102, 102, 102});
  }
}

TEST_CASE("a backward that makes another dtype is an error of its operation") {
  const Variable x = leaf({1});
  CHECK(error_of([&] { backward(apply(Wrong{}, x)); }) ==
        "wrong (backward): wrong: backward made a gradient of dtype f32 for an input of f64");
}

namespace {

// y = 2 x, whose backward writes over dy where it may.
struct Doubled {
  static constexpr std::string_view name = "doubled";
  bool* reused;
  Tensor forward(const Tensor& x) { return scale(x, 2.0); }
  void backward(const Tensor& dy, Grads& dx) {
    Tensor g = dx.reuse(dy);
    *reused = g.shares_memory_with(dy);
    CHECK(g.shape() == dy.shape());
    CHECK(g.dtype() == dy.dtype());
    for (i64 i = 0; i < g.count(); ++i) g.write<double>()[i] = 2 * dy.at(i);
    dx.add(0, g);
  }
};

}  // namespace

TEST_CASE("reuse: a gradient that nobody else reads is written over, any other is not") {
  bool reused = false;
  const auto doubled = [&](const Variable& x) { return apply(Doubled{&reused}, x); };
  const Variable x = leaf({1, 2});
  backward(total(doubled(x)));
  CHECK(reused);
  CHECK(elements(x.gradient()) == Numbers{2, 2});

  const Variable a = leaf({1, 2});
  const Tensor held = full({2}, 1.0, f64);  // the caller's dL/dy
  backward(doubled(a), held);
  CHECK(elements(held) == Numbers{1, 1});
  CHECK(elements(a.gradient()) == Numbers{2, 2});

  const Variable b = leaf({1, 2}), c = leaf({3, 4});
  backward(total(plus(doubled(b), doubled(c))));  // both get the same dy
  CHECK(elements(b.gradient()) == Numbers{2, 2});
  CHECK(elements(c.gradient()) == Numbers{2, 2});
}

TEST_CASE("reuse: nothing is written over while an observer looks on") {
  struct Looks : Observer {
    bool changes_contributions() const override { return true; }
  } looks;
  const ObserverScope scope(looks);
  bool reused = true;
  const Variable x = leaf({1, 2});
  backward(total(apply(Doubled{&reused}, x)));
  CHECK_FALSE(reused);
  CHECK(elements(x.gradient()) == Numbers{2, 2});
}
