// Chapter 4. The target distribution: both forms of smoothing, divisors, what is refused.
#include "autograd/ops/target_distribution.h"

#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

TargetDistribution distribution_of(const std::vector<i32>& ids, const CrossEntropyOptions& options) {
  return {Tensor::of<i32>({static_cast<i64>(ids.size())}, ids), options};
}

std::string refusal(TargetDistribution q, const Shape& rows, i64 K) {
  return small::error_of([&] { q.prepare("loss", rows, K); });
}

}  // namespace

TEST_CASE("q adds up to 1, whatever the smoothing") {
  for (const Smoothing smoothing : {Smoothing::all_classes, Smoothing::wrong_classes}) {
    for (const double eps : {0.0, 0.1, 1.0}) {
      TargetDistribution q = distribution_of({1}, {.label_smoothing = eps, .smoothing = smoothing});
      CHECK(q.prepare("loss", {1}, 5) == 1);
      CHECK(q.on + 4 * q.off == doctest::Approx(1).epsilon(1e-15));
      CHECK(q.off == doctest::Approx(eps / (smoothing == Smoothing::all_classes ? 5 : 4)).epsilon(1e-15));
    }
  }
}

TEST_CASE("the divisor is the number of targets that count, 1, or what was given") {
  const auto divisor = [](const std::vector<i32>& ids, const CrossEntropyOptions& options) {
    TargetDistribution q = distribution_of(ids, options);
    q.prepare("loss", {static_cast<i64>(ids.size())}, 3);
    return q.divisor;
  };
  CHECK(divisor({0, -100, 2}, {}) == 2);
  CHECK(divisor({0, 1, 2}, {.ignore_index = 0, .reduction = Reduction::sum}) == 1);
  CHECK(divisor({0, 1, 2}, {.reduction = Reduction::divisor, .divisor = 7}) == 7);
  CHECK(divisor({-100}, {}) == 1);  // nothing counts, and 0 / 0 would be NaN
  CHECK(divisor({-100}, {.reduction = Reduction::divisor, .divisor = 0}) == 1);
}

TEST_CASE("what cannot be wanted is refused") {
  CHECK(refusal(distribution_of({1, 2}, {}), {3}, 5) == "loss: logits [3, 5] need targets of shape [3], got [2]");
  CHECK(refusal(distribution_of({5}, {}), {1}, 5) == "loss: target 5 at position 0 is outside [0, 5)");
  CHECK(refusal({zeros({1}), {}}, {1}, 5) == "loss: targets must be i32");
  CHECK(refusal({Tensor(), {}}, {1}, 5) == "loss: targets must be i32");
  CHECK(refusal(distribution_of({-100}, {.reduction = Reduction::divisor, .divisor = -1}), {1}, 5) ==
        "loss: the divisor must be positive, got -1");
  CHECK(refusal(distribution_of({0}, {.divisor = 5}), {1}, 5) == "loss: a divisor counts only with Reduction::divisor");
  CHECK(refusal(distribution_of({0}, {.label_smoothing = 1.5}), {1}, 5) ==
        "loss: label smoothing must lie in [0, 1], got 1.5");
  CHECK(refusal(distribution_of({0}, {.label_smoothing = 0.1, .smoothing = Smoothing::wrong_classes}), {1}, 1) ==
        "loss: smoothing over wrong classes needs at least 2 classes");
  CHECK(refusal(distribution_of({0}, {.reduction = Reduction::divisor, .divisor = 0}), {1}, 5) ==
        "loss: the divisor must be positive, got 0");
}
