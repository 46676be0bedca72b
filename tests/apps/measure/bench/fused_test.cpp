// Chapter 9. Tests of `orrery bench fused`: both forms of a pair are the same function.
#include "apps/measure/bench/fused.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE("both forms of every pair give the same values and gradients") {
  for (const FusedPair& pair : fused_pairs(scaled(bench_config("toy"), 3, 5, 0))) {
    CAPTURE(pair.name);
    for (Variable leaf : pair.leaves) leaf.clear_gradient();  // pairs share leaves
    const Variable composed = pair.composed();
    backward(composed, full(composed.shape(), 1.0));
    std::vector<Tensor> gradients;
    for (Variable leaf : pair.leaves) {
      gradients.push_back(leaf.gradient());
      leaf.clear_gradient();
    }
    const Variable fused = pair.fused();
    backward(fused, full(fused.shape(), 1.0));
    const auto check_close = [](const Tensor& a, const Tensor& b) {
      REQUIRE(a.shape() == b.shape());
      const double size = std::sqrt(sum_of_squares(b)), distance = std::sqrt(sum_of_squares(a - b));
      CHECK(size > 0);
      CHECK(distance <= 1e-5 * size);
    };
    check_close(fused.value(), composed.value());
    for (size_t i = 0; i < pair.leaves.size(); ++i) check_close(pair.leaves[i].gradient(), gradients[i]);
  }
}
