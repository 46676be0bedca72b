// Chapter 3. The checker, checked: right backwards pass, wrong ones are rejected, and the message says what is wrong.
#include <doctest/doctest.h>

#include <sstream>

#include "autograd/apply.h"
#include "autograd/check/gradcheck.h"
#include "autograd/observer.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::contains;
using small::error_of;
using small::normal;

// Functions with a right backward and several wrong ones, for the checker to tell apart.
namespace {

using Inputs = std::vector<Tensor>;

// An operation whose two halves the test chooses; a gradient that is not defined is not passed on.
struct Custom {
  static constexpr std::string_view name = "custom";
  std::function<Tensor(const Inputs&)> value;
  std::function<Inputs(const Inputs&, const Tensor& dy)> gradient;
  Inputs saved;

  Tensor forward(std::span<const Tensor> inputs) {
    saved.assign(inputs.begin(), inputs.end());
    return value(saved);
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Inputs g = gradient(saved, dy);
    for (size_t i = 0; i < g.size(); ++i)
      if (g[i].defined()) dx.add(i, g[i]);
  }
};

// One function, and several backwards for it.
struct Case {
  std::string name;
  Inputs inputs;
  std::function<Tensor(const Inputs&)> value;
  std::function<Inputs(const Inputs&, const Tensor&)> right;
  std::vector<std::function<Inputs(const Inputs&, const Tensor&)>> wrong;
};

GradcheckReport check_with(const Case& c, const std::function<Inputs(const Inputs&, const Tensor&)>& gradient) {
  return gradcheck(
      [&](const std::vector<Variable>& x) {
        return apply(Custom{c.value, gradient, {}}, std::span<const Variable>(x));
      },
      c.inputs);
}

Tensor softmax_of(const Tensor& x) {
  const Tensor e = kernels::map(x, "exp", [](auto v) { return std::exp(v); });
  return e / sum(e, {-1}, true);
}

Tensor tanh_derivative(const Tensor& x) {
  return kernels::map(x, "tanh", [](auto v) { return 1 - std::tanh(v) * std::tanh(v); });
}

Case tanh_case() {
  Case c{"tanh",
         {normal({3, 4}, 7)},
         [](const Inputs& x) { return kernels::map(x[0], "tanh", [](auto v) { return std::tanh(v); }); },
         [](const Inputs& x, const Tensor& dy) { return Inputs{dy * tanh_derivative(x[0])}; },
         {}};
  for (const double factor : {0.0, -1.0, 2.0, 1.0001, 1.0 / 3.0, std::nan("")}) {
    c.wrong.push_back(
        [factor](const Inputs& x, const Tensor& dy) { return Inputs{dy * tanh_derivative(x[0]) * factor}; });
  }
  c.wrong.push_back([](const Inputs&, const Tensor&) { return Inputs{Tensor()}; });
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) {  // one element in twelve is not a number
    Tensor g = dy * tanh_derivative(x[0]);
    g.write<double>()[5] = std::nan("");
    return Inputs{g};
  });
  return c;
}

Case product_case() {
  Case c{"matmul",
         {normal({3, 3}, 7), normal({3, 3}, 8)},
         [](const Inputs& x) { return matmul(x[0], x[1]); },
         [](const Inputs& x, const Tensor& dy) {
           return Inputs{matmul(dy, x[1], Trans::b), matmul(x[0], dy, Trans::a)};
         },
         {}};
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) { return Inputs{matmul(dy, x[1], Trans::b), Tensor()}; });
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) {
    return Inputs{matmul(dy, x[1]), matmul(x[0], dy, Trans::a)};
  });
  c.wrong.push_back([](const Inputs& x, const Tensor& dy) {
    return Inputs{matmul(dy, x[1], Trans::b), permute(matmul(x[0], dy, Trans::a), {1, 0})};
  });
  return c;
}

Case softmax_case() {
  return {
      "softmax",
      {normal({3, 5}, 7)},
      [](const Inputs& x) { return softmax_of(x[0]); },
      [](const Inputs& x, const Tensor& dy) {
        const Tensor y = softmax_of(x[0]);
        return Inputs{y * (dy - sum(dy * y, {-1}, true))};
      },
      {[](const Inputs& x, const Tensor& dy) { return Inputs{softmax_of(x[0]) * dy}; },  // without the inner product
       [](const Inputs& x, const Tensor& dy) {                                           // over the wrong axis
         const Tensor y = softmax_of(x[0]);
         return Inputs{y * (dy - sum(dy * y, {0}, true))};
       },
       [](const Inputs& x, const Tensor& dy) { return Inputs{dy - softmax_of(x[0]) * sum(dy, {-1}, true)}; }}};
}

}  // namespace

TEST_CASE("gradcheck accepts right backwards and rejects wrong ones") {
  for (const Case& c : {tanh_case(), product_case(), softmax_case()}) {
    CAPTURE(c.name);
    const GradcheckReport right = check_with(c, c.right);
    CHECK(right);
    CHECK(right.skipped == 0);
    CHECK(right.worst_error < 1e-10);  // noise, not error: far below atol
    for (size_t i = 0; i < c.wrong.size(); ++i) {
      CAPTURE(i);
      const GradcheckReport wrong = check_with(c, c.wrong[i]);
      CHECK_FALSE(wrong);
      CHECK_FALSE(wrong.message.empty());
      CHECK(wrong.skipped == 0);
    }
  }
}

TEST_CASE("a constant ratio is named, and each failure says where") {
  const Case c = tanh_case();
  for (const auto& [factor, text] : {std::pair{1.0 / 3.0, "ratio 0.3333 everywhere"},
                                     {2.0, "ratio 2.0000 everywhere"},
                                     {-1.0, "ratio -1.0000 everywhere"},
                                     {0.0, "ratio 0.0000 everywhere"},
                                     {1.0001, "ratio 1.0001 everywhere"}}) {
    const GradcheckReport report = check_with(
        c, [f = factor](const Inputs& x, const Tensor& dy) { return Inputs{dy * tanh_derivative(x[0]) * f}; });
    CHECK_MESSAGE(contains(report.message, text), report.message);
    CHECK(contains(report.message, "12 of 12 coordinates are wrong"));
    CHECK(contains(report.message, "input 0[0, 3]: analytic "));
    CHECK(contains(report.message, "and 7 more"));
    REQUIRE(report.failures.size() == 12);
    CHECK(report.failures[6].where == "input 0[1, 2]");
    CHECK(report.failures[6].index == 6);
    CHECK(report.failures[6].analytic == doctest::Approx(factor * report.failures[6].numeric));
  }
  const GradcheckReport transposed = check_with(product_case(), product_case().wrong[1]);
  CHECK_FALSE(contains(transposed.message, "everywhere"));
  CHECK(contains(transposed.message, "input 0[0, 0]"));
}

TEST_CASE("a check that proves nothing is a failure") {
  // The plain sum of softmax is a constant: every backward that returns zeros would pass.
  const auto f = [](const Variable& x) { return sum(softmax(x)); };
  const GradcheckReport report = gradcheck(f, {normal({3, 4}, 7)});
  CHECK_FALSE(report);
  CHECK(contains(report.message, "input 0: the numeric gradient is zero everywhere"));
  CHECK(gradcheck(checkable(f, {normal({3, 4}, 7)}, {}, {{"input 0", "probabilities add up to 1"}})));
}

TEST_CASE("the bare name of a function is checked like a lambda") {
  const GradcheckReport report = gradcheck(sigmoid, {normal({3, 4}, 7)});
  CHECK(report);
  CHECK(report.coordinates == 12);
  CHECK(checkable(relu, {normal({2, 3}, 7)}).output().shape() == Shape{2, 3});
}

TEST_CASE("a declared zero is checked too") {
  const auto pass_through = [](const Variable& x) {  // says 1 where the truth is 0
    const auto value = [](const Inputs& in) { return in[0] * 0.0; };
    const auto gradient = [](const Inputs&, const Tensor& dy) { return Inputs{dy}; };
    return apply(Custom{value, gradient, {}}, std::span<const Variable>(&x, 1));
  };
  GradcheckReport report = gradcheck(checkable(pass_through, {normal({3}, 7)}, {}, {{"input 0", "says the test"}}));
  CHECK_FALSE(report);
  CHECK(
      contains(report.message, "input 0: is declared zero (says the test), but backward says otherwise at input 0[0]"));
  report =
      gradcheck(checkable([](const Variable& x) { return tanh(x); }, {normal({3}, 7)}, {}, {{"input 0", "wrongly"}}));
  CHECK_FALSE(report);
  CHECK(contains(report.message, "is declared zero (wrongly), but is "));
  report =
      gradcheck(checkable([](const Variable& x) { return tanh(x); }, {normal({3}, 7)}, {}, {{"input 1", "wrongly"}}));
  CHECK_FALSE(report);
  CHECK(contains(report.message, "input 1 is declared zero, but there is no such input"));
}

TEST_CASE("a coordinate at a kink is skipped and counted, wherever the kink lies") {
  int skipped = 0;
  for (double distance : {0.0,    1e-15,  1e-12,  1e-9, 1e-7, 1e-6, 1e-5,   3e-5,   6e-5,   1e-4,
                          1.2e-4, 1.6e-4, 2.5e-4, 4e-4, 6e-4, 9e-4, 1.4e-3, 1.9e-3, 2.1e-3, 1e-2}) {
    for (const double sign : {1.0, -1.0}) {
      CAPTURE(sign * distance);
      Tensor x = kernels::map(normal({40}, 7), "away from 0", [](auto v) { return v < 0 ? v - 0.1 : v + 0.1; });
      x.write<double>()[17] = sign * distance;
      const GradcheckReport report = gradcheck([](const Variable& v) { return relu(v); }, {x});
      CHECK(report);
      CHECK(report.coordinates == 40);
      CHECK(report.skipped <= 1);
      if (distance < 1e-5) CHECK(report.skipped == 1);
      if (distance > 1e-3) CHECK(report.skipped == 0);
      skipped += static_cast<int>(report.skipped);
    }
  }
  CHECK(skipped < 30);
}

TEST_CASE("more than 5 % of coordinates at kinks is a failure") {
  const auto with_kinks = [](i64 n, i64 kinks) {
    Tensor x = full({n}, 1.0, f64);
    for (i64 i = 0; i < kinks; ++i) x.write<double>()[i] = 0.0;
    return gradcheck([](const Variable& v) { return relu(v); }, {x});
  };
  CHECK(with_kinks(20, 1));
  CHECK(with_kinks(40, 2));
  CHECK_FALSE(with_kinks(40, 3));
  CHECK_FALSE(with_kinks(19, 1));
  CHECK(contains(with_kinks(40, 3).message, "3 of 40 coordinates stand at a kink"));
  CHECK(contains(with_kinks(2, 2).message, "input 0: every coordinate stands at a kink"));
}

TEST_CASE("steep functions are judged by smaller steps, and not excused as kinks") {
  const auto steep = [](double factor) {
    return [factor](const Variable& x) {
      const auto value = [](const Inputs& in) {
        return kernels::map(in[0], "exp", [](auto v) { return std::exp(20 * v); });
      };
      const auto gradient = [factor](const Inputs& in, const Tensor& dy) {
        return Inputs{dy * kernels::map(in[0], "exp", [](auto v) { return std::exp(20 * v); }) * (20 * factor)};
      };
      return apply(Custom{value, gradient, {}}, std::span<const Variable>(&x, 1));
    };
  };
  const Tensor x = normal({30}, 7) * 0.1;
  CHECK(gradcheck(steep(1.0), {x}));
  const GradcheckReport report = gradcheck(steep(1.0001), {x});
  CHECK_FALSE(report);
  CHECK(report.skipped == 0);
}

TEST_CASE("parameters that are reached but not listed, and listed but not reached, are named") {
  const Variable weight = parameter(normal({3}, 7), "weight"), unnamed = parameter(normal({3}, 9));
  const auto f = [&](const Variable& x) { return x * weight; };
  GradcheckReport report = gradcheck(f, {normal({2, 3}, 7)});
  CHECK_FALSE(report);
  CHECK(contains(report.message,
                 "backward reached parameter weight, which is not among the leaves: visit does not name it"));
  CHECK(gradcheck(f, {normal({2, 3}, 7)}, {{"weight", weight}}));
  report = gradcheck([&](const Variable& x) { return x * unnamed; }, {normal({2, 3}, 7)});
  CHECK_MESSAGE(contains(report.message, "backward reached a parameter"), report.message);
  CHECK(contains(report.message, "without a name"));
  // A parameter made anew in each call is freed with the tape, before the report is written.
  report =
      gradcheck([](const Variable& x) { return x * parameter(full({3}, 2.0, f64), "made anew"); }, {normal({2, 3}, 7)});
  CHECK(contains(report.message, "backward reached parameter made anew, which is not among the leaves"));
  // detach cuts the tape, but the value still depends on the weight.
  report = gradcheck([&](const Variable& x) { return x * detach(weight); }, {normal({2, 3}, 7)}, {{"weight", weight}});
  CHECK_FALSE(report);
  CHECK(contains(report.message, "no gradient reached weight, but the numeric one is not zero"));
  report = gradcheck([](const Variable& x) { return tanh(detach(x)); }, {normal({2, 3}, 7)});
  CHECK(contains(report.message, "no gradient reached input 0"));
}

TEST_CASE("f32 leaves and constants are errors") {
  Rng rng(1);
  CHECK(error_of([&] { gradcheck([](const Variable& x) { return tanh(x); }, {randn({3}, rng)}); }) ==
        "gradcheck: input 0 is f32; a numeric gradient needs f64, so convert first");
  const Parameters leaves{{"c", constant(normal({3}, 7))}};
  CHECK(error_of([&] { gradcheck([](const Variable& x) { return tanh(x); }, {normal({3}, 7)}, leaves); }) ==
        "gradcheck: c is not a parameter");
}

TEST_CASE("values and gradients of the leaves are restored") {
  Variable weight = parameter(Tensor::of<double>({4}, {-0.0, 1e-300, 0.1, -3.7}), "weight");
  const Tensor bits = weight.value().clone(), gradient = normal({4}, 3);
  weight.mutable_gradient() = gradient.clone();
  CHECK(gradcheck(Checkable{[&] { return exp(weight); }, {{"weight", weight}}, {}}, {.directions = 2}));
  CHECK(same_bits(weight.value(), bits));
  CHECK(same_bits(weight.gradient(), gradient));

  int calls = 0;
  const Checkable throws{[&] {
                           check(++calls < 8, "f", "throws in the middle");
                           return exp(weight);
                         },
                         {{"weight", weight}},
                         {}};
  CHECK(error_of([&] { gradcheck(throws); }) == "f: throws in the middle");
  CHECK(same_bits(weight.value(), bits));
  CHECK(same_bits(weight.gradient(), gradient));
}

TEST_CASE("an observer that was in force before is told of the leaves that a check reaches") {
  struct Counter final : Observer {
    int leaves = 0;
    void leaf_reached(const Leaf&) override { ++leaves; }
  } counter;
  const ObserverScope scope(counter);
  CHECK(gradcheck([](const Variable& x) { return tanh(x); }, {normal({3}, 7)}));
  CHECK(counter.leaves == 1);
}

TEST_CASE("elements are named by their indices") {
  CHECK(place("w", {4, 5}, 7) == "w[1, 2]");
  CHECK(place("s", {}, 0) == "s[]");
}

TEST_CASE("a function that is not repeatable is a failure that says so") {
  int calls = 0;
  const Checkable f{[&, x = parameter(normal({3}, 7), "x")] { return x * static_cast<double>(++calls); }, {}, {}};
  const GradcheckReport report = gradcheck(f);
  CHECK_FALSE(report);
  CHECK(contains(report.message, "f is not repeatable"));
}

TEST_CASE("a value that is not finite is a failure that says so") {
  const GradcheckReport report =
      gradcheck([](const Variable& x) { return log(x); }, {Tensor::of<double>({2}, {1.0, -1.0})});
  CHECK_FALSE(report);
  CHECK(contains(report.message, "f's value is not finite"));
}

TEST_CASE("inputs without elements, views of leaves, and one leaf under two names can be checked") {
  CHECK(gradcheck([](const Variable& x) { return tanh(x); }, {zeros({0, 3}, f64)}));
  const auto product = [](const Variable& a, const Variable& b) { return matmul(a, b); };
  const Inputs inputs{zeros({0, 3}, f64), normal({3, 2}, 7)};
  CHECK_FALSE(gradcheck(product, inputs));
  CHECK(gradcheck(checkable(product, inputs, {}, {{"input 1", "no row of input 0 meets it"}})));
  CHECK(gradcheck([](const Variable& x) { return reshape(x, {6}); }, {normal({2, 3}, 7)}));
  const Variable tied = parameter(normal({3}, 7), "tied");
  const GradcheckReport report = gradcheck(Checkable{[&] { return tied * tied; }, {{"a", tied}, {"b", tied}}, {}});
  CHECK(report);
  CHECK(report.inputs == 1);
}

TEST_CASE("sampled coordinates and directions find a wrong backward as well") {
  const Case c = softmax_case();
  const auto f = [&](bool right) {
    return checkable(
        [&c, right](const std::vector<Variable>& x) {
          return apply(Custom{c.value, right ? c.right : c.wrong[0], {}}, std::span<const Variable>(x));
        },
        {normal({20, 5}, 7)});
  };
  GradcheckReport report = gradcheck(f(true), {.coordinates = 7, .directions = 3});
  CHECK(report);
  CHECK(report.coordinates == 10);
  report = gradcheck(f(false), {.coordinates = 7, .directions = 3});
  CHECK_FALSE(report);
  REQUIRE(report.failures.size() == 10);
  CHECK(report.failures.back().where == "direction 2");
  CHECK(report.failures.back().index == -1);
  // Of 1000 rows two are used: a choice of 5 coordinates still meets one that is not zero.
  const auto lookup = [](const Variable& weight) { return embedding(weight, Tensor::of<i32>({2}, {3, 77})); };
  CHECK(gradcheck(lookup, {normal({1000, 2}, 7)}, {}, {.coordinates = 5}));
}

TEST_CASE("a report prints in lines that a reader understands") {
  std::ostringstream good, bad;
  good << gradcheck(checkable([](const Variable& x) { return sum(softmax(x)); }, {normal({2, 3}, 7)}, {},
                              {{"input 0", "probabilities add up to 1"}}));
  CHECK(contains(good.str(), "ok: 1 input, 6 coordinates, 0 skipped at kinks, worst error "));
  CHECK(contains(good.str(), "\n  zero: input 0 (probabilities add up to 1)"));
  bad << check_with(tanh_case(), tanh_case().wrong[2]);
  CHECK(contains(bad.str(), "FAILED: 1 input, 12 coordinates, 0 skipped at kinks"));
  CHECK(contains(bad.str(), "\n12 of 12 coordinates are wrong; ratio 2.0000 everywhere\n"));
}
