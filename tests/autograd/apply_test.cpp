// Chapter 2. Tests of apply: what is recorded, lists of inputs, optional inputs, and errors that say where.
#include "autograd/apply.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/autograd/small_ops.h"

using namespace orrery;
using namespace orrery::small;
using Numbers = std::vector<double>;

namespace {

/// y = a w + bias, where the bias may be missing.
struct Affine {
  static constexpr std::string_view name = "affine";
  Saved a, w;
  Tensor forward(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    a = x;
    w = weight;
    const Tensor y = mul(x, weight);
    return bias.defined() ? add(y, bias) : y;
  }
  void backward(const Tensor& dy, Grads& dx) {
    if (dx.wanted(0)) dx.add(0, mul(dy, w));
    if (dx.wanted(1)) dx.add(1, mul(dy, a));
    dx.add(2, dy);  // nothing happens where nobody asks
  }
};

struct TooFewNames {
  Tensor forward(const Tensor& x) { return x; }
  void backward(const Tensor&, Grads&) {}
};
struct WrongResult {
  static constexpr std::string_view name = "wrong";
  int forward(const Tensor&) { return 0; }
  void backward(const Tensor&, Grads&) {}
};

struct Asks {
  static constexpr std::string_view name = "asks";
  std::array<bool, 3>* wanted;
  Tensor forward(const Tensor& a, const Tensor& b) { return add(a, b); }
  void backward(const Tensor& dy, Grads& dx) {
    *wanted = {dx.wanted(0), dx.wanted(1), dx.wanted(2)};
    dx.add(0, dy);
    dx.add(1, dy);
  }
};

}  // namespace

static_assert(Operation<Plus, Tensor, Tensor>);
static_assert(Operation<Halves, Tensor>);
static_assert(Operation<PlusAll, std::span<const Tensor>>);
static_assert(!Operation<Plus, Tensor>, "the number of inputs counts");
static_assert(!Operation<TooFewNames, Tensor>, "a name is needed");
static_assert(!Operation<WrongResult, Tensor>, "forward returns tensors");

TEST_CASE("an error lists each input with its shape and origin") {
  const Variable h = parameter(full({32, 10, 64}, 1.0));
  const Variable x = gelu(h);
  const Variable weight = parameter(full({128, 512}, 1.0), "encoder.layers.2.linear1.weight");
  CHECK(error_of([&] { (void)matmul(x, weight); }) ==
        "matmul: inner sizes differ (64 != 128)\n"
        "  input 0: [32, 10, 64]  from gelu\n"
        "  input 1: [128, 512]    from parameter encoder.layers.2.linear1.weight");
}

TEST_CASE("origins: constants, parameters without a name, missing inputs") {
  CHECK(error_of([&] { apply(Affine{}, constant(full({2}, 1.0)), parameter(full({3}, 1.0)), Variable()); }) ==
        "affine: shapes [2] and [3] do not broadcast (2 against 3 at axis -1)\n"
        "  input 0: [2]     from a constant\n"
        "  input 1: [3]     from a parameter without a name\n"
        "  input 2: (none)");
}

TEST_CASE("dtypes are not mixed") {
  CHECK(error_of([&] {
          plus(constant(full({2}, 1.0, f32)), leaf({1, 2}, "w"));
        }) ==
        "plus: dtypes differ (f32 and f64)\n"
        "  input 0: [2]  from a constant\n"
        "  input 1: [2]  from parameter w");
}

TEST_CASE("an operation that failed leaves no trace") {
  const Variable a = leaf({1, 2});
  CHECK_THROWS_AS(plus(a, leaf({1, 2, 3})), Error);
  CHECK(a.node().use_count() == 1);
  backward(total(plus(a, a)));
  CHECK(elements(a.gradient()) == Numbers{2, 2});
}

TEST_CASE("an optional input may be missing, and gets no gradient") {
  const Variable x = leaf({1, 2}), w = leaf({3, 4}), bias = leaf({5, 6});
  const Variable with = apply(Affine{}, x, w, bias), without = apply(Affine{}, x, w, Variable());
  CHECK(elements(with.value()) == Numbers{8, 14});
  CHECK(elements(without.value()) == Numbers{3, 8});
  backward(total(without));
  CHECK(elements(x.gradient()) == Numbers{3, 4});
  CHECK_FALSE(bias.gradient().defined());
  backward(total(with));
  CHECK(elements(bias.gradient()) == Numbers{1, 1});
}

TEST_CASE("constants get no gradient and cost no work") {
  std::array<bool, 3> wanted{};
  const Variable x = leaf({1});
  backward(apply(Asks{&wanted}, constant(full({1}, 2.0, f64)), x));
  CHECK(wanted == std::array{false, true, false});
  CHECK(x.gradient().item() == 1.0);
}

TEST_CASE("a list of inputs arrives as a span, repeated ones included") {
  const Variable a = leaf({1, 2}), b = leaf({3, 4});
  const std::vector<Variable> parts{a, b, a, constant(full({2}, 1.0, f64))};
  const Variable y = plus_all(parts);
  CHECK(elements(y.value()) == Numbers{6, 9});
  backward(total(y));
  CHECK(elements(a.gradient()) == Numbers{2, 2});
  CHECK(elements(b.gradient()) == Numbers{1, 1});
}

TEST_CASE("two outputs know which one they are") {
  const auto [first, second] = halves(leaf({1, 2, 3, 4}));
  CHECK(first.node() == second.node());
  CHECK(first.output() == 0);
  CHECK(second.output() == 1);
  CHECK(first.node()->outputs.size() == 2);
}

TEST_CASE("the error of an operation with very many inputs shows the first of them") {
  std::vector<Variable> parts(100'000, constant(zeros({2, 3})));
  parts.back() = constant(zeros({2, 3, 4}));
  const std::string text = error_of([&] { (void)concat(parts, 0); });
  CHECK(contains(text, "\n  input 7: [2, 3]  from a constant\n  and 99992 more inputs"));
  CHECK_FALSE(contains(text, "input 8:"));
  CHECK(text.size() < 1000);
}
