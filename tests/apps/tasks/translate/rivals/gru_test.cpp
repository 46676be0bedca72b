// Chapter 7. The recurrent units: the GRU and the one that attends, whose values are PyTorch's (tests/torch).
#include "apps/tasks/translate/rivals/recurrent_translator.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::translate;

namespace {

Gru noisy_gru() {
  Rng rng(2);
  Gru layer(4, 3, rng);
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
