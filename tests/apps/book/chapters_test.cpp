// Chapter 5. What the appendix says of one long step; and the chapters' numbers of measured speed, those of the bench's
// tables.
#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/layers/linear.h"
#include "nn/models/stack.h"
#include "optim/adam.h"
#include "tests/text.h"

using namespace orrery;
using namespace orrery::style;

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

TEST_CASE("on two Zen 5 cores all train more than twice as fast as in PyTorch, on others 1.2 to 5.0 times as fast") {
  const auto faster = rows_called("times faster than PyTorch", lines_of("apps/measure/bench/README.md"));
  REQUIRE(faster.size() == 5);
  using Range = std::pair<double, double>;
  std::vector<Range> ranges;
  for (const std::vector<double>& one : faster) {
    CHECK(one.size() == 8);
    ranges.emplace_back(*std::min_element(one.begin(), one.end()), *std::max_element(one.begin(), one.end()));
  }
  // Zen 5; a Xeon; Zen 4, and in bf16; a Xeon in bf16
  CHECK(ranges == std::vector<Range>{{2.1, 6.5}, {1.2, 5.0}, {1.2, 4.3}, {1.2, 6.0}, {1.2, 4.1}});
}

TEST_CASE("on two Zen 5 cores a step of a large model takes at most a tenth longer than the limit") {
  const auto times = rows_called("times the limit", lines_of("apps/measure/bench/README.md"));
  REQUIRE(times.size() == 3);
  REQUIRE(times[0].size() == 8);  // toy, annotated, tiny-mt, base, nanogpt, gpt-mid, gpt2, long
  for (const size_t large : {1, 3, 5, 6, 7}) CHECK(times[0][large] <= 1.1);
}
