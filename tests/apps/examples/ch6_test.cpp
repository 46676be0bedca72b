// Chapter 6. Solution of ch6's exercise: attention is blind to order, positions give it sight.
#include <doctest/doctest.h>

#include <cmath>

#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/positions/positional_encoding.h"

using namespace orrery;

namespace {
constexpr i64 n = 5, d_model = 8;

// Rows in the order last to first, for x [1, n, d_model].
double change_by_turning(const nn::MultiHeadAttention& layer, const Mask& mask, const Variable& x,
                         const Variable& turned) {
  nn::Pass pass = nn::Pass::inference();
  const Tensor y = layer(x, mask, pass).value(), y_turned = layer(turned, mask, pass).value();
  return std::sqrt(sum_of_squares(flip(y, 1) - y_turned));
}
}  // namespace

TEST_CASE("exercise 6: rows in another order come out in that order, unless a mask or positions tell them apart") {
  Rng rng(6);
  nn::MultiHeadAttention layer(d_model, 2, rng);
  nn::to(layer, f64);
  const nn::PositionalEncoding positions(nn::Positions::sinusoidal, n, d_model, rng);
  const Variable x = constant(randn({1, n, d_model}, rng, f64)), turned = constant(flip(x.value(), 1));
  CHECK(change_by_turning(layer, Mask(), x, turned) < 1e-12);
  CHECK(change_by_turning(layer, Mask::causal(), x, turned) > 1e-2);
  CHECK(change_by_turning(layer, Mask(), positions(x), positions(turned)) > 1e-2);
}
