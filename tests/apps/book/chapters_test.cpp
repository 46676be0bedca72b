// Chapter 5. What chapters 4 to 8 say and ask their readers to try: layer norm's gradient, a gated layer of one's own,
// the order of rows, LoRA, shared keys, one long step; and their numbers of measured speed, those of the bench's
// tables.
#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/check/gradcheck.h"
#include "nn/generate/decoding.h"
#include "nn/layers/linear.h"
#include "nn/positions/positional_encoding.h"
#include "optim/adam.h"
#include "optim/optim.h"
#include "tests/text.h"

using namespace orrery;
using namespace orrery::style;

namespace {

// "GLU variants improve Transformer" (Shazeer 2020), equation 6: FFN_SwiGLU.
struct GatedFeedForward : nn::Module {
  nn::Linear linear1, linear2, linear3;
  GatedFeedForward(i64 d_model, i64 d_ff, Rng& rng)
      : linear1(d_model, d_ff, rng), linear2(d_model, d_ff, rng), linear3(d_ff, d_model, rng) {}
  Variable operator()(const Variable& x) const { return linear3(linear1(x) * silu(linear2(x))); }
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
    v("linear3", linear3);
  }
};

// The same layer, of which one part is forgotten in `visit`.
struct Forgetful : GatedFeedForward {
  using GatedFeedForward::GatedFeedForward;
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear3", linear3);
  }
};

struct Network : nn::Module {
  nn::Linear linear1, linear2;
  Network(i64 hidden, Rng& rng) : linear1(2, hidden, rng), linear2(hidden, 2, rng) {}
  Variable operator()(const Variable& x) const { return linear2(tanh(linear1(x))); }
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
  }
};

}  // namespace

TEST_CASE("exercise 5: a gated layer of one's own is proven by one line") {
  Rng rng(5);
  GatedFeedForward layer(4, 6, rng);
  nn::to(layer, f64);
  const std::vector<Tensor> x = {randn({3, 4}, rng, f64)};
  CHECK(nn::gradcheck(
      layer, [&](const Variable& v) { return layer(v); }, x));
  CHECK(layer.parameter_count() == 3 * 4 * 6 + 6 + 6 + 4);
}

TEST_CASE("exercise 5: a part that visit does not name is found by the same line") {
  Rng rng(5);
  Forgetful layer(4, 6, rng);
  nn::to(layer.linear2, f64);
  nn::to(layer, f64);
  const std::vector<Tensor> x = {randn({3, 4}, rng, f64)};
  CHECK_FALSE(nn::gradcheck(
      layer, [&](const Variable& v) { return layer(v); }, x));
}

TEST_CASE("exercise 5: SGD with momentum learns exclusive or") {
  Rng rng(5);
  Network network(8, rng);
  const Variable x = constant(Tensor::of<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}));
  const Tensor labels = Tensor::of<i32>({4}, {0, 1, 1, 0});
  optim::SGD sgd(network.parameters(), {.momentum = 0.9});
  for (i64 step = 1; step <= 400; ++step) {
    backward(cross_entropy(network(x), labels));
    sgd.step(optim::warmup_cosine(step, 0.3, 20, 400));
  }
  CHECK(same_bits(argmax(network(x).value()), labels));
  CHECK(cross_entropy(network(x), labels).item() < 0.1);
}

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

TEST_CASE("LoRA's B A, added to the weight W, gives the same map as W beside B A") {
  Rng rng(3);
  nn::Linear layer(6, 5, rng);
  nn::to(layer, f64);
  const Tensor A = randn({2, 6}, rng, f64), B = randn({5, 2}, rng, f64);
  const Variable x = constant(randn({4, 6}, rng, f64));
  const Tensor with = layer(x).value() + matmul(matmul(x.value(), A, Trans::b), B, Trans::b);
  add_in_place(layer.weight.mutable_value(), matmul(B, A));
  CHECK(std::sqrt(sum_of_squares(layer(x).value() - with)) < 1e-12);
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
