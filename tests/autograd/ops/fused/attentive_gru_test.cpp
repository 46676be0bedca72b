// Chapter 8. The unit that attends before each step against its formulas, written out step by step.
#include "core/machine/memory.h"
#include "core/mask.h"
#include "tests/autograd/ops/fused.h"
#include "tests/autograd/ops/textbook_gru.h"

using namespace orrery;
using namespace orrery::small;

namespace {

struct AttentiveSizes {
  i64 B, steps, S, H, A, M;
  std::vector<Shape> shapes() const {
    return {{B, steps, 3 * H}, {B, H}, {B, S, A}, {B, S, M}, {3 * H, H}, {3 * H}, {A, H}, {A}, {3 * H, M}};
  }
};

AttentiveGruResult fused(const Variables& x, const Mask& mask, Tensor* weights = nullptr) {
  return attentive_gru(x[0], x[1], x[2], x[3], {x[4], x[5], x[6], x[7], x[8]}, mask, weights);
}

Variable both(const AttentiveGruResult& result) { return concat({result.states, result.contexts}, 2); }

Variable textbook(const Variables& x, const Mask& mask) {
  return textbook_attentive_gru(x[0], x[1], x[2], x[3], {x[4], x[5], x[6], x[7], x[8]}, mask);
}

Variables constants(const std::vector<Tensor>& tensors) {
  Variables x;
  for (const Tensor& t : tensors) x.push_back(constant(t));
  return x;
}

}  // namespace

TEST_CASE("states and contexts, with and without padding, equal the formulas") {
  for (const AttentiveSizes& s :
       {AttentiveSizes{1, 1, 1, 1, 1, 1}, {2, 3, 4, 5, 6, 7}, {3, 4, 5, 9, 17, 8}, {20, 3, 4, 12, 11, 17}}) {
    std::vector<i32> some;
    for (i64 b = 0; b < s.B; ++b) some.push_back(static_cast<i32>(1 + b % s.S));
    for (const Mask& mask : {Mask(), Mask::padding(some)}) {
      INFO(s.B, " ", s.steps, " ", s.S, " ", s.H, " ", mask);
      check_fused([=](const Variables& x) { return both(fused(x, mask)); },
                  [=](const Variables& x) { return textbook(x, mask); }, normals(s.shapes()));
    }
  }
}

TEST_CASE("each result alone, and all without a bias, equal the textbook form") {
  const AttentiveSizes s{2, 3, 4, 5, 6, 7};
  const std::vector<Tensor> inputs = normals(s.shapes());
  check_fused([](const Variables& x) { return fused(x, Mask()).states; },
              [](const Variables& x) { return slice(textbook(x, Mask()), 2, 0, 5); }, inputs);
  check_fused([](const Variables& x) { return fused(x, Mask()).contexts; },
              [](const Variables& x) { return slice(textbook(x, Mask()), 2, 5); }, inputs);
  const auto without_bias = [](Variables x) {
    x.insert(x.begin() + 5, Variable());
    return x;
  };
  std::vector<Tensor> rest = inputs;
  rest.erase(rest.begin() + 5);
  check_fused([=](const Variables& x) { return both(fused(without_bias(x), Mask())); },
              [=](const Variables& x) { return textbook(without_bias(x), Mask()); }, rest);
}

TEST_CASE("weights add up to 1, are 0 at padding, and NaN there reaches nothing") {
  const AttentiveSizes s{2, 3, 4, 5, 6, 7};
  std::vector<Tensor> inputs = normals(s.shapes());
  const Mask mask = Mask::padding({4, 2});
  Tensor weights, with_nan;
  const AttentiveGruResult plain = fused(constants(inputs), mask, &weights);
  CHECK(weights.shape() == Shape{2, 3, 4});
  CHECK(small::close(sum(weights, {2}), std::vector<double>(6, 1.0)));
  for (i64 t = 0; t < 3; ++t) CHECK((weights(1, t, 2) == 0 && weights(1, t, 3) == 0));
  for (const size_t i : {2, 3}) inputs[i](1, 3, 2) = std::nan("");
  Variables x;
  for (const Tensor& t : inputs) x.push_back(parameter(t.clone()));
  const AttentiveGruResult result = fused(x, mask, &with_nan);
  CHECK(same_bits(result.states.value(), plain.states.value()));
  CHECK(same_bits(result.contexts.value(), plain.contexts.value()));
  backward(both(result), normal({2, 3, 12}, 4));
  for (const Variable& input : x) CHECK(std::isfinite(sum_of_squares(input.gradient())));
}

TEST_CASE("one step after another gives the states of all steps, from the state where the last call ended") {
  const AttentiveSizes s{3, 5, 4, 6, 7, 8};
  const std::vector<Tensor> inputs = normals(s.shapes());
  const Mask mask = Mask::padding({4, 2, 3});
  const Tensor whole = both(fused(constants(inputs), mask)).value();
  Tensor state = inputs[1];
  for (i64 t = 0; t < s.steps; ++t) {
    std::vector<Tensor> step = inputs;
    step[0] = slice(inputs[0], 1, t, t + 1);
    step[1] = state;
    const AttentiveGruResult result = fused(constants(step), mask);
    state = result.states.value().reshape({s.B, s.H});
    CHECK(small::distance({both(result).value()}, {slice(whole, 1, t, t + 1)}) <= 1e-14);
  }
}

TEST_CASE("what is not recorded has the same bits, and keeps one step") {
  const AttentiveSizes s{16, 60, 8, 64, 48, 32};
  const std::vector<Tensor> inputs = normals(s.shapes(), f32);
  const auto run = [&](const auto& make) {
    Variables x;
    for (const Tensor& t : inputs) x.push_back(make(t));
    reset_peak();
    const i64 before = memory_counters().live_bytes;
    const AttentiveGruResult result = fused(x, Mask());
    return std::tuple(result.states.value(), result.contexts.value(), memory_counters().peak_bytes - before);
  };
  const auto [states, contexts, most] = run([](const Tensor& t) { return parameter(t); });
  const auto [free_states, free_contexts, least] = run([](const Tensor& t) { return constant(t); });
  CHECK(same_bits(states, free_states));
  CHECK(same_bits(contexts, free_contexts));
  if (counts_memory()) CHECK(most - least >= (s.steps - 2) * s.B * (4 * s.H + s.A) * 4);
}

TEST_CASE("bits do not depend on the number of threads") {
  CHECK(thread_proof(
      [](const Variables& x) {
        return both(fused(x, Mask::padding({3, 1, 2})));
      },
      AttentiveSizes{3, 2, 3, 300, 200, 150}.shapes()));
}

TEST_CASE("shapes that do not fit are errors that name the input") {
  const AttentiveSizes s{2, 3, 4, 5, 6, 7};
  const auto error_with = [&](size_t which, const Shape& shape) {
    std::vector<Shape> shapes = s.shapes();
    shapes[which] = shape;
    const std::string error = error_of([&] { fused(constants(normals(shapes)), Mask()); });
    return error.substr(0, error.find('\n'));
  };
  CHECK(error_with(0, {2, 3, 16}) == "attentive_gru: the gates need 3 H columns, have 16");
  CHECK(error_with(1, {2, 4}) == "attentive_gru: the first state needs shape [2, 5], has [2, 4]");
  CHECK(error_with(3, {2, 3, 7}) == "attentive_gru: the memory needs shape [2, 4, 7], has [2, 3, 7]");
  CHECK(error_with(4, {5, 15}) == "attentive_gru: the weight needs shape [15, 5], has [5, 15]");
  CHECK(error_with(5, {5}) == "attentive_gru: the bias needs shape [15], has [5]");
  CHECK(error_with(6, {6, 6}) == "attentive_gru: the weight of queries needs shape [6, 5], has [6, 6]");
  CHECK(error_with(7, {7}) == "attentive_gru: the weight of scores needs shape [6], has [7]");
  CHECK(error_with(8, {15, 6}) == "attentive_gru: the weight of contexts needs shape [15, 7], has [15, 6]");
}
