// Chapter 3. Tests of the choice of numbers: draws that show nothing are passed over, wrong backwards are not.
#include <doctest/doctest.h>

#include "autograd/check/gradcheck.h"
#include "autograd/check/mutation.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/autograd/wrong_backwards.h"

using namespace orrery;

namespace {

// f of four numbers, which are `first` with seed 3 and drawn with every other.
template <class F>
Sample first_drawn(const F& f, const std::vector<double>& first, bool always = false) {
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
  using wrong::Inputs;
  const auto f = [](const Variable& x) {
    const auto value = [](const Inputs& in) {
      return kernels::map(in[0], "relu", [](auto v) { return v > 0 ? v : 0; });
    };
    const auto twice = [](const Inputs& in, const Tensor& dy) {
      return Inputs{dy * kernels::map(in[0], "relu", [](auto v) { return decltype(v)(v > 0 ? 2 : 0); })};
    };
    return apply(wrong::Custom{value, twice, {}}, std::span<const Variable>(&x, 1));
  };
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
