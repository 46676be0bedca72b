// Chapter 4. What chapters 4 to 8 say: layer norm's gradient, the order of rows, shared keys, one long step; and their
// numbers of measured speed, those of the bench's tables.
#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/generate/decoding.h"
#include "nn/layers/linear.h"
#include "nn/positions/positional_encoding.h"
#include "optim/adam.h"
#include "optim/optim.h"
#include "tests/text.h"

using namespace orrery;
using namespace orrery::style;

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

TEST_CASE("with one head, shared keys are that head's own") {
  constexpr i64 d = 6;
  Rng rng(3);
  nn::MultiHeadAttention layer(d, 1, rng);
  nn::to(layer, f64);
  const Variable x = constant(randn({2, 4, d}, rng, f64));
  const Variable Q = reshape(layer.in_proj(x, {0, d}), {2, 1, 4, d}),
                 K = reshape(layer.in_proj(x, {d, 2 * d}), {2, 1, 4, d}),
                 V = reshape(layer.in_proj(x, {2 * d, 3 * d}), {2, 1, 4, d});
  const Variable shared = layer.out_proj(reshape(attention(Q, K, V, Mask()).output, {2, 4, d}));
  nn::Pass pass = nn::Pass::inference();
  CHECK(std::sqrt(sum_of_squares(layer(x, Mask(), pass).value() - shared.value())) < 1e-12);
}

TEST_CASE("after one long step post-norm layers add nearly the same vector at every position") {
  constexpr i64 d = 32, classes = 8;
  Rng rng(7);
  nn::Encoder stack(6, false, {.d_model = d, .num_heads = 4, .d_ff = 64}, rng);
  nn::Linear generator(d, classes, rng);
  nn::to(stack, f64);
  nn::to(generator, f64);
  const Variable input = constant(randn({16, 16, d}, rng, f64));
  const Tensor labels = randint(0, classes, {16, 16}, rng);
  const auto length = [](const Tensor& x) { return std::sqrt(sum_of_squares(x)); };
  double differs = 0;  // of what the last sub-layer adds, the part that differs between positions
  const auto forward = [&] {
    nn::Pass pass = nn::Pass::inference();
    Variable x = input;
    for (const nn::EncoderLayer& layer : stack.layers) {
      x = layer.norm1(x + layer.self_attn(x, Mask::causal(), pass));
      const Variable f = layer.feed_forward(x, pass);
      differs = length(f.value() - mean(f.value(), {1}, true)) / length(f.value());
      x = layer.norm2(x + f);
    }
    return x;
  };
  backward(cross_entropy(generator(forward()), labels));
  const double differed = differs;
  optim::Adam(stack.parameters()).step(0.01);
  forward();
  CAPTURE(differed);
  CHECK(differs < 0.5 * differed);
}

namespace {

// The numbers of every row "| name | 1.2 | 3 |" of a text, table after table.
std::vector<std::vector<double>> rows_called(const std::string& name, const Words& lines) {
  static const std::regex cell("\\| *([0-9.]+) *(?=\\|)");
  std::vector<std::vector<double>> rows;
  for (const std::string& line : lines) {
    if (!line.starts_with("| " + name + " |")) continue;
    rows.emplace_back();
    for (const std::string& number : matches_in(line, cell)) rows.back().push_back(std::stod(number));
  }
  return rows;
}

}  // namespace

TEST_CASE("rows of a table are read with all their numbers") {
  using Rows = std::vector<std::vector<double>>;
  CHECK(rows_called("a", {"| a | 1.5 | 2 |", "| ab | 3 |", "text", "| a | 4 |"}) == Rows{{1.5, 2}, {4}});
}

TEST_CASE("on two Zen 5 cores all train more than twice as fast as in PyTorch, on a Xeon 1.0 to 4.3 times as fast") {
  const auto faster = rows_called("times faster than PyTorch", lines_of("apps/measure/bench/README.md"));
  REQUIRE(faster.size() == 3);
  using Range = std::pair<double, double>;
  std::vector<Range> ranges;
  for (const std::vector<double>& one : faster) {
    CHECK(one.size() == 8);
    ranges.emplace_back(*std::min_element(one.begin(), one.end()), *std::max_element(one.begin(), one.end()));
  }
  CHECK(ranges == std::vector<Range>{{2.1, 6.5}, {1.0, 4.3}, {1.2, 4.1}});  // Zen 5; a Xeon; a Xeon in bf16
}

TEST_CASE("on two Zen 5 cores a step of a large model takes at most a tenth longer than the limit") {
  const auto times = rows_called("times the limit", lines_of("apps/measure/bench/README.md"));
  REQUIRE(times.size() == 2);
  REQUIRE(times[0].size() == 8);  // toy, annotated, tiny-mt, base, nanogpt, gpt-mid, gpt2, long
  for (const size_t large : {1, 3, 5, 6, 7}) CHECK(times[0][large] <= 1.1);
}
