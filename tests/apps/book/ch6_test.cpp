// Chapter 6. Attention is blind to order; turned queries and keys see only distances; ALiBi works with a cache.
#include <doctest/doctest.h>

#include <cmath>

#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/positions/positional_encoding.h"

using namespace orrery;

namespace {
constexpr i64 n = 5, d_model = 8;

// The norm of flip(layer(x)) - layer(flip(x)), where flip reverses the rows of x [1, n, d_model].
double change_by_reversing(const nn::MultiHeadAttention& layer, const Mask& mask, const Variable& x,
                           const Variable& reversed) {
  nn::Pass pass = nn::Pass::inference();
  const Tensor y = layer(x, mask, pass).value(), y_reversed = layer(reversed, mask, pass).value();
  return std::sqrt(sum_of_squares(flip(y, 1) - y_reversed));
}
}  // namespace

TEST_CASE("rows in another order come out in that order, unless a mask or positions tell them apart") {
  Rng rng(6);
  nn::MultiHeadAttention layer(d_model, 2, rng);
  nn::to(layer, f64);
  const nn::PositionalEncoding positions(nn::Positions::sinusoidal, n, d_model, rng);
  const Variable x = constant(randn({1, n, d_model}, rng, f64)), reversed = constant(flip(x.value(), 1));
  CHECK(change_by_reversing(layer, Mask(), x, reversed) < 1e-12);
  CHECK(change_by_reversing(layer, Mask::causal(), x, reversed) > 1e-2);
  CHECK(change_by_reversing(layer, Mask(), positions(x), positions(reversed)) > 1e-2);
}

TEST_CASE("scores of turned queries and keys stay the same when all positions move on by 100") {
  const auto turned = [](const Tensor& x, i64 first) {  // x [n, 2]: one pair of columns, turned by its position
    Tensor y = x.clone();
    for (i64 i = 0; i < x.size(0); ++i) {
      const double c = std::cos(static_cast<double>(first + i)), s = std::sin(static_cast<double>(first + i));
      y.write<double>()[2 * i] = x.at(2 * i) * c - x.at(2 * i + 1) * s;
      y.write<double>()[2 * i + 1] = x.at(2 * i) * s + x.at(2 * i + 1) * c;
    }
    return y;
  };
  Rng rng(6);
  const Tensor Q = randn({n, 2}, rng, f64), K = randn({n, 2}, rng, f64);
  const auto scores = [&](i64 first) { return matmul(turned(Q, first), turned(K, first), Trans::b); };
  CHECK(std::sqrt(sum_of_squares(scores(100) - scores(0))) < 1e-12);
  CHECK(std::sqrt(sum_of_squares(matmul(turned(Q, 100), turned(K, 0), Trans::b) - scores(0))) > 0.1);
}

namespace {
// ALiBi with the slope 1/2 for both heads: minus half the distance. Entry e of a head is for keys e - m + 1 positions
// after the query.
struct Distances : nn::ScoreBias {
  Variable operator()(i64 queries, i64 keys, Dtype dtype) const override {
    Tensor bias = zeros({2, queries + keys - 1}, f64);
    for (i64 i = 0; i < bias.count(); ++i)
      bias.write<double>()[i] = -0.5 * std::abs(static_cast<double>(i % (queries + keys - 1) - keys + 1));
    return constant(bias.to(dtype));
  }
  void visit(nn::Visitor&) override {}
};
}  // namespace

TEST_CASE("token by token, with a cache, ALiBi in a window gives the same answers") {
  Rng rng(6);
  nn::MultiHeadAttention layer(d_model, 2, rng);
  layer.score_bias = Distances();
  layer.own_mask = Mask::window(2);
  const Tensor x = randn({1, n, d_model}, rng);
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  const Tensor whole = layer(constant(x), Mask::causal(), pass).value();
  nn::AttentionState state = layer.state(1, n, f32);
  for (i64 t = 0; t < n; ++t) {
    const Tensor y = layer.next(constant(slice(x, 1, t, t + 1)), state).value();
    CHECK(std::sqrt(sum_of_squares(y - slice(whole, 1, t, t + 1))) < 1e-6);
  }
}
