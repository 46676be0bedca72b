// Chapter 3. Tests of the mistakes, of the engine without one of its rules, of the choice of numbers for a check, and
// of the words of its report.
#include "autograd/check/mistakes.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "autograd/check/faulty_engine.h"
#include "autograd/check/gradcheck.h"
#include "autograd/check/mutation.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"
#include "tests/autograd/small_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("each change does what its name says") {
  const Tensor g = Tensor::of<double>({2, 2}, {1, 2, 3, 4}), so_far = full({2, 2}, 10.0, f64);
  const std::map<std::string, std::vector<double>> expected{
      {"x 0", {0, 0, 0, 0}},        {"x -1", {-1, -2, -3, -4}},
      {"x 2", {2, 4, 6, 8}},        {"x 1.0001", {1.0001, 2 * 1.0001, 3 * 1.0001, 4 * 1.0001}},
      {"transposed", {1, 3, 2, 4}}, {"overwriting", {-9, -8, -7, -6}}};
  size_t tried = 0;
  for (const Change& change : all_changes()) {
    CAPTURE(change.name);
    const auto found = expected.find(change.name);
    const bool is_listed = found != expected.end(), drops = change.name == "dropped";
    tried += is_listed || drops;
    if (is_listed) CHECK(elements(change.apply(g, so_far)) == found->second);
    if (drops) CHECK_FALSE(change.apply(g, so_far).defined());
    if (change.name == "overwriting") CHECK_FALSE(change.possible(g, {}));
  }
  CHECK(tried == 7);  // the eighth, of late rows, is below
  CHECK(all_changes().size() == 8);
  const Change late = all_changes().back();
  const Tensor rows = full({8194, 2}, 1.0, f64);
  CHECK_FALSE(late.possible(g, {}));
  CHECK(late.possible(rows, {}));
  CHECK(sum(late.apply(rows, {})).item() == 2 * 8194 + 4);
}

TEST_CASE("a recorder lists contributions, and the leaves declared zero that they lead to") {
  const Tensor x = Tensor::of<double>({2, 1}, {1, 2});
  const Checkable f = checkable([](const Variable& a, const Variable& b) { return exp(a) + softmax(b); }, {x, x}, {},
                                {{"input 1", "one element"}});
  const std::vector<Change> changes = all_changes();
  Recorder recorder(f, changes);
  {
    const ObserverScope scope(recorder);
    backward(sum(f.output()));
  }
  int declared = 0;
  for (const Contribution& c : recorder.contributions) declared += c.declared_zero == "one element";
  CHECK(declared == 2);  // of add to softmax, of softmax to input 1
  CHECK(recorder.contributions.size() == 5);
}

namespace {

using Numbers = std::vector<double>;

// Whether the rule had anything to do in a walk of y; `error` is what the walk threw.
bool walk_without(EngineRule rule, const Variable& y, std::string& error) {
  bool needed = false;
  error = error_of([&] { backward_without(rule, y, full(y.shape(), 1.0, f64), needed); });
  return needed;
}

}  // namespace

TEST_CASE("oldest first: a node is visited before its gradient is complete") {
  const Variable a = leaf({1, 2});
  std::string error;
  // plus(a, a) is older than times.
  const Variable s = plus(a, a), product = times(s, a);
  CHECK(walk_without(EngineRule::newest_first, total(plus(s, product)), error));
  CHECK(error.find("was visited before") != std::string::npos);
  CHECK_FALSE(a.gradient().defined());
  const Variable b = leaf({1, 2});
  const Variable t = plus(b, b);
  CHECK_FALSE(walk_without(EngineRule::unbroadcast, total(plus(t, times(t, b))), error));
  CHECK(elements(b.gradient()) == Numbers{2 + 4, 2 + 8});
}

TEST_CASE("no un-broadcast: a parameter gets a gradient of another shape, and an operation refuses it") {
  std::string error;
  const Variable a = leaf({1}), b = leaf({1, 2, 3});
  CHECK(walk_without(EngineRule::unbroadcast, total(plus(b, a)), error));
  CHECK(error == "");
  CHECK(a.gradient().shape() == Shape{3});
  const Variable c = leaf({1});
  CHECK(walk_without(EngineRule::unbroadcast, total(plus(b, plus(c, c))), error));
  CHECK(error.find("a gradient of shape [3] reached an output of shape [1]") != std::string::npos);
  CHECK_FALSE(c.gradient().defined());
}

namespace {

// relu, whose backward gives twice the gradient.
struct TwiceRelu {
  static constexpr std::string_view name = "relu";
  Saved x{};
  Tensor forward(const Tensor& in) {
    x = in;
    return kernels::map(in, name, [](auto v) { return v > 0 ? v : 0; });
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy * kernels::map(x.get(), name, [](auto v) { return decltype(v)(v > 0 ? 2 : 0); }));
  }
};

// f of four numbers, which are `first` with seed 3 and drawn with every other.
template <class F> Sample first_drawn(const F& f, const std::vector<double>& first, bool always = false) {
  return {"sample",
          "",
          [=](Dtype dtype, u64 seed) {
            Rng rng(seed);
            const Tensor x = seed == 3 || always ? Tensor::of<double>({4}, first) : randn({4}, rng, f64);
            return checkable(f, {x.to(dtype)});
          },
          {}};
}

const auto relu_of = [](const Variable& x) { return relu(x); };
const std::vector<double> at_kinks{0, 0, 1, 2}, all_off{-1, -2, -3, -4};

}  // namespace

TEST_CASE("numbers at kinks, or for which every slope is zero, are drawn again") {
  for (const std::vector<double>& first : {at_kinks, all_off}) {
    const DrawnReport drawn = gradcheck(first_drawn(relu_of, first), 3);
    CHECK_MESSAGE(drawn.report.ok, drawn.report);
    CHECK(drawn.redrawn == 1);
    CHECK(drawn.seed != 3);
    CHECK(gradcheck(first_drawn(relu_of, first), 4).redrawn == 0);
    CHECK_FALSE(gradcheck(first_drawn(relu_of, first, true), 3).report.ok);  // it shows nothing with any numbers
  }
}

TEST_CASE("a wrong backward fails, whether the first numbers show it or not") {
  const auto f = [](const Variable& x) { return apply(TwiceRelu{}, x); };
  for (const std::vector<double>& first : {at_kinks, all_off, std::vector<double>{1, 2, 3, 4}}) {
    const DrawnReport drawn = gradcheck(first_drawn(f, first), 3);
    CHECK_FALSE(drawn.report.ok);
    CHECK(drawn.report.failures.size() >= 1);
    CHECK(drawn.report.failures.at(0).analytic == doctest::Approx(2 * drawn.report.failures.at(0).numeric));
  }
}

TEST_CASE("mutants are made of the numbers that were checked") {
  const MutationReport report = mutate(first_drawn(relu_of, all_off), 3);
  CHECK(report);
  CHECK(report.count(Mutant::Fate::caught) >= 5);
  CHECK_THROWS_AS(mutate(first_drawn(relu_of, all_off, true), 3), Error);
}

namespace {

GradcheckReport report_wrong_by(double factor, i64 count) {
  GradcheckReport report;
  report.coordinates = 20;
  for (i64 i = 0; i < count; ++i) {
    const double numeric = 1.0 + static_cast<double>(i);
    report.failures.push_back({"x", i, "x[" + std::to_string(i) + "]", factor * numeric, numeric});
  }
  return report;
}

}  // namespace

TEST_CASE("a ratio near 1 is given with the digits that show the fault") {
  CHECK(report_wrong_by(1.000001, 7).describe().find("; ratio 1.000001 everywhere\n") != std::string::npos);
  CHECK(report_wrong_by(0.99999, 7).describe().find("; ratio 0.99999 everywhere\n") != std::string::npos);
  CHECK(report_wrong_by(1.000001, 1).describe().ends_with("ratio 1.000001"));
  CHECK(report_wrong_by(-0.0, 1).describe().ends_with("analytic 0, numeric 1, ratio 0"));
  CHECK(report_wrong_by(2, 7).describe().find("; ratio 2.0000 everywhere\n") != std::string::npos);
  GradcheckReport other = report_wrong_by(1.000001, 2);
  other.failures[1].analytic = 0.9999 * other.failures[1].numeric;
  CHECK(other.describe().find("everywhere") == std::string::npos);
}

TEST_CASE("a report tells which check found the mistake") {
  CHECK(GradcheckReport().failed_check() == GradientCheck::none);
  GradcheckReport report = report_wrong_by(2, 1);
  CHECK(report.failed_check() == GradientCheck::coordinate);
  report.failures[0].index = -1;
  CHECK(report.failed_check() == GradientCheck::direction);
  report.problems.push_back({GradientCheck::vacuous, "x: nothing was checked"});
  CHECK(report.failed_check() == GradientCheck::vacuous);
  CHECK(report.describe().starts_with("x: nothing was checked\n"));
}

TEST_CASE("every check has a name of its own") {
  std::set<std::string_view> names;
  constexpr int count = static_cast<int>(GradientCheck::finite) + 1;
  for (int i = 0; i < count; ++i) names.insert(name_of(static_cast<GradientCheck>(i)));
  CHECK(names.size() == count);
  CHECK(names.contains("missing gradient"));
}
