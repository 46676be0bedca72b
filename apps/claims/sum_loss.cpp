// Chapter 9. A claim about checks of derivatives: what a plain sum as the loss does not see.
//
// Serves: autograd/ops/softmax.cpp
#include <functional>

#include "apps/claims/measures.h"
#include "apps/program/columns.h"
#include "autograd/apply.h"
#include "autograd/check/bug_zoo.h"
#include "autograd/check/gradcheck.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "core/tensor_ops.h"

namespace orrery::claims {
namespace {

// softmax with a backward that computes dx from y and dy by a rule of its own.
using BackwardRule = Tensor (*)(const Tensor& y, const Tensor& dy);
struct SoftmaxWith {
  static constexpr std::string_view name = "softmax";
  BackwardRule rule;
  Saved y{};
  Tensor forward(const Tensor& x) {
    const Tensor result = orrery::softmax(constant(x)).value();
    y = result;
    return result;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, rule(y.get(), dy)); }
};
using Function = std::function<Variable(const Variable& x)>;
Function softmax_with(BackwardRule rule) {
  return [rule](const Variable& x) { return apply(SoftmaxWith{.rule = rule}, x); };
}

Tensor right(const Tensor& y, const Tensor& dy) { return y * (dy - sum(y * dy, {-1}, true)); }

struct Backward {
  std::string formula;
  Function softmax;
};
const std::vector<Backward>& wrong_backwards() {
  using T = const Tensor&;
  static const std::vector<Backward> all{
      {"y dy, without the inner product (bug zoo)", bugs::softmax_without_inner_product},
      {"dy - <y, dy>, without the factor y", softmax_with([](T y, T dy) { return dy - sum(y * dy, {-1}, true); })},
      {"y (dy - mean dy)", softmax_with([](T y, T dy) { return y * (dy - mean(dy, {-1}, true)); })},
      {"y (dy - <y, dy>) over the wrong axis",
       softmax_with([](T y, T dy) { return y * (dy - sum(y * dy, {0}, true)); })},
      {"y^2 (dy - <y, dy>)", softmax_with([](T y, T dy) { return y * right(y, dy); })},
      {"- y (dy - <y, dy>)", softmax_with([](T y, T dy) { return right(y, dy) * -1.0; })},
      {"2 y (dy - <y, dy>)", softmax_with([](T y, T dy) { return right(y, dy) * 2.0; })},
      {"0", softmax_with([](T y, T dy) { return right(y, dy) * 0.0; })}};
  return all;
}

// Whether numeric and analytic gradient of L(softmax(x)) agree, in f64, everywhere.
bool passes(const Function& loss_of, bool slope_is_zero) {
  Rng rng(1);
  const std::vector<Tensor> inputs{randn({3, 5}, rng, f64)};
  std::vector<DeclaredZero> zeros;
  if (slope_is_zero) zeros.push_back({.name = "input 0", .reason = "each row of softmax adds up to 1"});
  return gradcheck(checkable(loss_of, inputs, {}, zeros)).ok;
}
bool passes_sum(const Function& softmax) {
  return passes([=](const Variable& x) { return sum(softmax(x)); }, true);
}
bool passes_random(const Function& softmax) {
  return passes([=](const Variable& x) { return softmax(x); }, false);  // gradcheck draws L = <u, softmax(x)>
}

}  // namespace

Finding sum_hides_softmax(const Run& run) {
  Finding finding{.measured = {"dx computed as                                  L = sum(y)     L = <u, y>, u random"}};
  const auto seen = [](bool passed) { return passed ? "passes" : "found"; };
  const auto row = [&](const std::string& formula, bool by_sum, bool by_random) {
    finding.measured.push_back(fitted(formula, 48) + fitted(seen(by_sum), 15) + seen(by_random));
  };
  const bool sum_ok = passes_sum(softmax_with(right)), random_ok = passes_random(softmax_with(right));
  row("y (dy - <y, dy>), which is right", sum_ok, random_ok);
  size_t hidden = 0, found = 0;
  for (const auto& [formula, softmax] : wrong_backwards()) {
    run.go_on();
    const bool by_sum = passes_sum(softmax), by_random = passes_random(softmax);
    row(formula, by_sum, by_random);
    hidden += by_sum;
    found += !by_random;
  }
  const size_t all = wrong_backwards().size();
  finding.measured.push_back(
      numbers("of %zu wrong backwards the sum hides %zu, the random cotangent %zu", all, hidden, all - found));
  const bool checks_work = sum_ok && random_ok && found == all;
  finding.verdict = verdict_of(checks_work && hidden > 0, checks_work && hidden == all);
  return finding;
}

}  // namespace orrery::claims
