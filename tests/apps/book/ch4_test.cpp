// Chapter 4. What layer norm's gradient can never say, as the chapter's text states it.
//
// Adding a number to all of x leaves y = layer_norm(x) as it is, so dx has no part along (1, ..., 1). Stretching x
// about its mean leaves y as it is except for eps, so dx has a part as small as eps along n = (x - mean(x)) r.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE("exercise 4: in each row, layer norm's dx sums to 0, and dx n to eps r^3 times the sum of dy n") {
  for (const double eps : {1e-14, 1e-5, 0.5}) {
    Rng rng(4);
    const Variable x = parameter(randn({6, 9}, rng, f64));
    const Tensor dy = randn({6, 9}, rng, f64);
    const Variable n = layer_norm(x, {}, {}, eps);  // without weight and bias, y is n itself
    backward(n, dy);
    const Tensor centred = x.value() - mean(x.value(), {-1}, true), variance = mean(centred * centred, {-1});
    const Tensor along_ones = sum(x.gradient(), {-1}), along_n = sum(x.gradient() * n.value(), {-1});
    const Tensor dy_along_n = sum(dy * n.value(), {-1});
    for (i64 row = 0; row < 6; ++row) {
      CAPTURE(eps);
      CHECK(std::fabs(along_ones.at(row)) < 1e-12);
      CHECK(std::fabs(along_n.at(row) - eps * std::pow(variance.at(row) + eps, -1.5) * dy_along_n.at(row)) < 1e-12);
    }
    CHECK(sum_of_squares(x.gradient()) > 1e-3);  // and it is not simply 0
  }
}
