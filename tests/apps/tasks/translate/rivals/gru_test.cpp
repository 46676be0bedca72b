// Chapter 7. The recurrent units: the GRU against loops, padding, both directions; the one that attends; names.
#include "apps/tasks/translate/rivals/recurrent_translator.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::translate;

namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// All states of one row x [T, in] that starts at 0, by loops.
std::vector<double> states_by_loops(const Gru& layer, const Tensor& x) {
  const i64 T = x.size(0), in = x.size(1), H = layer.weight_hh.size(1);
  std::vector<double> all, h(static_cast<size_t>(H), 0.0);
  const auto sum = [&](const Variable& W, const Variable& b, i64 row, i64 n, const auto& at) {
    double total = b.value().at(row);
    for (i64 i = 0; i < n; ++i) total += W.value()(row, i) * at(i);
    return total;
  };
  for (i64 t = 0; t < T; ++t) {
    std::vector<double> next;
    for (i64 i = 0; i < H; ++i) {
      const auto from_x = [&](i64 gate) {
        return sum(layer.weight_ih, layer.bias_ih, gate * H + i, in, [&](i64 j) { return x(t, j); });
      };
      const auto from_h = [&](i64 gate) {
        return sum(layer.weight_hh, layer.bias_hh, gate * H + i, H, [&](i64 j) { return h[static_cast<size_t>(j)]; });
      };
      const double r = sigmoid_of(from_x(0) + from_h(0)), z = sigmoid_of(from_x(1) + from_h(1));
      next.push_back((1 - z) * std::tanh(from_x(2) + r * from_h(2)) + z * h[static_cast<size_t>(i)]);
    }
    h = next;
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

Gru noisy_gru(bool reverse = false) {
  Rng rng(2);
  Gru layer(4, 3, rng, reverse);
  make_noisy(layer, 5);
  return layer;
}

constexpr AttentiveGruSizes sizes{.in = 4, .H = 3, .M = 5, .A = 6};

struct Sentence {
  Tensor x, s0, memory;
  Mask mask;
};
Sentence sentence() {
  Rng rng(1);
  return {randn({2, 3, 4}, rng, f64), randn({2, 3}, rng, f64), randn({2, 4, 5}, rng, f64),
          Mask::padding(Tensor::of<i32>({2}, {4, 2}))};
}

AttentiveGru noisy_layer() {
  Rng rng(2);
  AttentiveGru layer(sizes, rng);
  make_noisy(layer, 3);
  return layer;
}

// A linear map that another module holds.
struct Wrapped : nn::LinearMap {
  nn::Linear inner;
  explicit Wrapped(nn::Linear linear) : inner(std::move(linear)) {}
  Variable operator()(const Variable& x, RowRange rows) const override { return inner(x, rows); }
  void visit(nn::Visitor& v) override { v.inlined(inner); }
};

}  // namespace

TEST_CASE("the states are those of the formulas") {
  Rng rng(1);
  const Tensor x = randn({2, 5, 4}, rng, f64);
  const Gru layer = noisy_gru();
  const Tensor states = layer(constant(x)).value();
  for (i64 b = 0; b < 2; ++b)
    CHECK(distance(states.rows(b, b + 1).reshape({15}),
                   Tensor::of({15}, states_by_loops(layer, x.rows(b, b + 1).reshape({5, 4})))) < 1e-13);
}

TEST_CASE("reading in reverse is reading the reversed sequence") {
  Rng rng(1);
  const Tensor x = randn({2, 5, 4}, rng, f64);
  const Gru ahead = noisy_gru(), back = noisy_gru(true);
  const Tensor states = back(constant(x)).value();
  CHECK(distance(flip(states, 1), ahead(constant(flip(x, 1))).value()) < 1e-14);
  CHECK(distance(back.last(constant(states)).value(), slice(states, 1, 0, 1).reshape({2, 3})) == 0);
}

TEST_CASE("a padded row has the states of the row alone, in both directions, whatever the padding holds") {
  Rng rng(3);
  BidirectionalGru layer(4, 3, rng);
  make_noisy(layer, 6);
  Tensor x = randn({2, 5, 4}, rng, f64);
  const auto alone = layer(constant(slice(x.rows(1, 2), 1, 0, 2)));
  x(1, 3, 0) = NAN;
  const Variable in = parameter(x);
  const auto [states, last] = layer(in, Mask::padding({5, 2}));
  CHECK(distance(slice(states.value().rows(1, 2), 1, 0, 2), alone.states.value()) < 1e-14);
  CHECK(distance(last.value().rows(1, 2), alone.last.value()) < 1e-14);
  CHECK(all_finite(states.value()));
  backward(sum(states) + sum(last));
  CHECK(all_finite(in.gradient()));
  for (const NamedParameter& p : layer.parameters()) CHECK(all_finite(p.value.gradient()));
}

TEST_CASE("names are torch.nn.GRU's, and it starts within 1 / sqrt(H)") {
  Rng rng(4);
  BidirectionalGru layer(4, 9, rng);
  std::vector<std::string> names;
  for (const NamedParameter& p : layer.parameters()) {
    names.push_back(p.name);
    CHECK(max(p.value.value()).item() <= 1.0 / 3);
    CHECK(max(-p.value.value()).item() <= 1.0 / 3);
    CHECK(max(p.value.value()).item() > 0.2);
  }
  CHECK(names == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                          "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                          "bias_hh_l0_reverse"});
  CHECK(layer.parameter_count() == 2 * 3 * 9 * (4 + 1 + 9 + 1));
}

TEST_CASE("without positions there is no last state") {
  Rng rng(5);
  const Gru layer(4, 3, rng);
  CHECK_THROWS_WITH_AS(layer.last(constant(zeros({2, 0, 3}))), "gru: no position, so no last state", Error);
}

TEST_CASE("linear maps of one's own give the same, and get gradients") {
  const Sentence s = sentence();
  const auto run = [&](const AttentiveGru& layer) {
    return layer(constant(s.x), constant(s.s0), constant(s.memory), s.mask).states;
  };
  const Tensor plain = run(noisy_layer()).value();
  nn::Linear AttentiveGru::*const maps[] = {&AttentiveGru::input, &AttentiveGru::context, &AttentiveGru::recurrent,
                                            &AttentiveGru::query, &AttentiveGru::key};
  for (const auto map : maps) {
    AttentiveGru layer = noisy_layer();
    layer.*map = Wrapped(std::move(layer.*map));
    const Variable states = run(layer);
    CHECK(distance(states.value(), plain) < 1e-13);
    backward(sum(states));
    for (const NamedParameter& p : layer.parameters()) {
      CAPTURE(p.name);
      CHECK(p.value.gradient().defined());
    }
  }
}

TEST_CASE("of a mask only the padding is used") {
  const Sentence s = sentence();
  const AttentiveGru layer = noisy_layer();
  const auto run = [&](const Mask& mask) {
    return layer(constant(s.x), constant(s.s0), constant(s.memory), mask).states.value();
  };
  CHECK(same_bits(run(s.mask & Mask::window(0)), run(s.mask)));
}

TEST_CASE("weights add up to 1 over the words that are there; NaN in the padding reaches nothing") {
  AttentiveGru layer = noisy_layer();
  Sentence s = sentence();
  s.memory(1, 3, 0) = NAN;
  nn::AttentionRecorder seen;
  const Variable memory = parameter(s.memory);
  const AttentiveGruResult result = layer(constant(s.x), constant(s.s0), memory, s.mask, &seen);
  const Tensor weights = seen.of(layer).reshape({2, 3, 4});
  CHECK(all_finite(result.states.value()));
  CHECK(distance(sum(weights, {2}), full({2, 3}, 1.0, f64)) < 1e-14);
  CHECK(sum_of_squares(slice(weights.rows(1, 2), 2, 2)) == 0);
  backward(sum(result.states));
  CHECK(all_finite(memory.gradient()));
  for (const NamedParameter& p : layer.parameters()) CHECK(all_finite(p.value.gradient()));
}

TEST_CASE("no step at all: results without positions") {
  const AttentiveGru layer = noisy_layer();
  const Sentence s = sentence();
  nn::AttentionRecorder seen;
  const auto [states, contexts] =
      layer(constant(zeros({2, 0, 4}, f64)), constant(s.s0), constant(s.memory), s.mask, &seen);
  CHECK(states.shape() == Shape{2, 0, 3});
  CHECK(contexts.shape() == Shape{2, 0, 5});
  CHECK(seen.of(layer).shape() == Shape{2, 1, 0, 4});
  CHECK(noisy_gru()(constant(zeros({2, 0, 4}, f64))).shape() == Shape{2, 0, 3});
}

TEST_CASE("parameters are named after their maps") {
  AttentiveGru layer = noisy_layer();
  const std::vector<std::string> names = names_of(layer.parameters());
  CHECK(names == std::vector<std::string>{"input.weight", "input.bias", "context.weight", "recurrent.weight",
                                          "recurrent.bias", "query.weight", "key.weight", "key.bias", "v"});
}
