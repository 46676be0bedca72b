// Chapter 5. Tests of what all optimisers share: which parameters move, by how much, and what is refused.
#include "optim/optimizer.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/tensor_ops.h"
#include "optim/optim.h"
#include "tests/core/support.h"

using namespace orrery;
using small::elements;
using small::error_of;
using Numbers = std::vector<double>;

namespace {

Variable leaf(const Numbers& numbers, const std::string& name = "") {
  return parameter(Tensor::of({static_cast<i64>(numbers.size())}, numbers), name);
}

void set_gradient(Variable x, const Numbers& numbers) { x.mutable_gradient() = Tensor::of(x.shape(), numbers); }

}  // namespace

TEST_CASE("a step moves every copy of a parameter, counts as a change, and releases the gradient") {
  Variable w = leaf({1, 2});
  const Variable copy = w;
  optim::SGD sgd({w});
  set_gradient(w, {8, 16});
  const u64 version = w.value().version();
  sgd.step(0.125);
  CHECK(elements(copy.value()) == Numbers{0, 0});
  CHECK(w.value().version() > version);
  CHECK_FALSE(w.gradient().defined());
}

TEST_CASE("a parameter without a gradient neither moves nor decays nor ages") {
  const Variable used = leaf({1}, "used"), idle = leaf({1}, "idle");
  optim::AdamW adam({used, idle}, {.weight_decay = 0.5});
  set_gradient(used, {1});
  adam.step(0.1);
  CHECK(used.value().at(0) != 1);
  CHECK(idle.value().at(0) == 1);
  CHECK(adam.state().at("step.used").item() == 1);
  CHECK(adam.state().at("step.idle").item() == 0);
  set_gradient(idle, {1});
  adam.step(0.1);  // its own first step, as large as the other's was
  CHECK(idle.value().at(0) == doctest::Approx(1 - 0.05 - 0.1).epsilon(1e-7));
  CHECK(adam.state().at("step.used").item() == 1);
}

TEST_CASE("groups have their own weight decay and learning rate") {
  const Variable a = leaf({1}), b = leaf({1}), c = leaf({1});
  optim::SGD sgd({{.parameters = {{"a", a}}, .weight_decay = 0.5},
                  {.parameters = {{"b", b}}, .learning_rate_factor = 3},
                  {.parameters = {{"c", c}}, .weight_decay = 0.0}},
                 {.weight_decay = 0.25});
  for (const Variable& x : {a, b, c}) set_gradient(x, {1});
  sgd.step(0.125);
  CHECK(a.value().at(0) == 1 - 0.125 * 1.5);
  CHECK(b.value().at(0) == 1 - 0.375 * 1.25);
  CHECK(c.value().at(0) == 1 - 0.125);
}

TEST_CASE("a tied parameter is updated once") {
  const Variable shared = leaf({1}), other = leaf({1});
  optim::SGD sgd(Parameters{{"embedding", shared}, {"other", other}, {"output", shared}});
  CHECK(sgd.parameters().size() == 2);
  set_gradient(shared, {1});
  set_gradient(other, {1});
  sgd.step(0.25);
  CHECK(shared.value().at(0) == 0.75);
  CHECK(other.value().at(0) == 0.75);
}

TEST_CASE("clear_gradients forgets them without a step") {
  const Variable w = leaf({1});
  optim::SGD sgd({w});
  set_gradient(w, {1});
  sgd.clear_gradients();
  sgd.step(1);
  CHECK(w.value().at(0) == 1);
}

TEST_CASE("what an optimiser refuses when it is made") {
  const Variable w = leaf({1}), v = leaf({1});
  const auto make = [](const optim::ParameterGroups& groups) { return error_of([&] { optim::SGD sgd(groups); }); };
  CHECK(make(Parameters{}) == "optimizer: was given no parameters");
  CHECK(make({constant(zeros({1}))}) == "optim: parameter 0 is not a parameter: it collects no gradient");
  CHECK(make({{.parameters = {{"w", w}}}, {.parameters = {{"again", w}}}}) ==
        "optimizer: parameter again is in two groups");
  CHECK(make(Parameters{{"w", w}, {"w", v}}) == "optimizer: two parameters are named w");
  CHECK(make({{.parameters = {{"w", w}}, .weight_decay = -1.0}}) ==
        "optimizer: weight decay must be 0 or more, got -1");
  CHECK(make({{.parameters = {{"w", w}}, .learning_rate_factor = -1}}) ==
        "optimizer: a group's learning rate factor must be 0 or more, got -1");
}

TEST_CASE("what a step refuses, before anything has moved") {
  const Variable first = leaf({1}, "first");
  Variable second = leaf({1}, "second");
  optim::SGD sgd({first, second});
  set_gradient(first, {1});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(error_of([&] { sgd.step(-1); }) == "optimizer: the learning rate must be 0 or more and finite, got -1");
  CHECK(error_of([&] { sgd.step(infinity); }) == "optimizer: the learning rate must be 0 or more and finite, got inf");
  CHECK(error_of([&] { sgd.step(std::numeric_limits<double>::quiet_NaN()); }) != "");
  second.replace_value(zeros({2}, f32));  // the optimizer still has the old value
  second.mutable_gradient() = zeros({2}, f32);
  CHECK(error_of([&] { sgd.step(1); }) ==
        "optimizer: parameter second is f64 [1], its gradient f32 [2]; was the model converted after the optimizer was "
        "made?");
  CHECK(first.value().at(0) == 1);
  CHECK(first.gradient().defined());
}

TEST_CASE("a state goes from one optimiser into another, or is refused whole") {
  const Variable w = leaf({1, 2}, "w"), copy = leaf({1, 2}, "w");
  optim::Adam adam({w}), restored({copy});
  for (int step = 0; step < 3; ++step) {
    set_gradient(w, {1.0 + step, -2});
    adam.step(0.1);
  }
  for (const auto& [name, tensor] : adam.state()) CHECK_FALSE(same_bits(tensor, restored.state().at(name)));

  std::map<std::string, Tensor> state = adam.state();
  state.erase("v.w");
  CHECK(error_of([&] { restored.load_state(state); }) == "load_state: missing v.w");
  state["v.w"] = zeros({3}, f64);
  CHECK(error_of([&] { restored.load_state(state); }) == "load_state: v.w is f64 [3], needs f64 [2]");
  state = adam.state();
  state["x"] = zeros({1});
  CHECK(error_of([&] { restored.load_state(state); }) == "load_state: unexpected x");
  CHECK(elements(restored.state().at("m.w")) == Numbers{0, 0});

  restored.load_state(adam.state());
  Variable target = copy;
  copy_into(target.mutable_value(), w.value());
  for (const Variable& x : {w, copy}) set_gradient(x, {0.5, 0.25});
  adam.step(0.1);
  restored.step(0.1);
  CHECK(same_bits(w.value(), copy.value()));
  for (const auto& [name, tensor] : adam.state()) {
    CHECK(same_bits(tensor, restored.state().at(name)));
    CHECK_FALSE(tensor.shares_memory_with(restored.state().at(name)));
  }
}
