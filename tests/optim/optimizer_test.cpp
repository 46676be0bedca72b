// Chapter 5. Tests of what all optimisers share: which parameters move, by how much, and what is refused.
#include "optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "core/tensor_ops.h"
#include "optim/optim.h"
#include "tests/autograd/small_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::elements;
using small::error_of;
using small::leaf;
using Numbers = std::vector<double>;

namespace {

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

TEST_CASE("a parameter whose value was replaced is refused, since only its old value would move") {
  Variable w = leaf({1, 2}, "w");
  optim::SGD sgd({w});
  w.replace_value(Tensor::of<double>({2}, {3, 4}));
  set_gradient(w, {8, 16});
  CHECK(small::contains(error_of([&] { sgd.step(0.125); }), "parameter w got another value after the optimizer was"));
  CHECK(elements(w.value()) == Numbers{3, 4});
  optim::SGD again({w});
  again.step(0.125);
  CHECK(elements(w.value()) == Numbers{2, 2});
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

namespace {

// One of each optimiser, with weight decay.
template <class F> void for_each_optimiser(const F& f) {
  const auto run = [&](const char* name, const auto& make) {
    CAPTURE(name);
    const Variable first = leaf({1, 2}, "first"),
                   hidden = parameter(Tensor::of<double>({2, 2}, {1, 2, 3, 4}), "h.0.weight");
    const auto optimizer = make(Parameters{{"first", first}, {"h.0.weight", hidden}});
    f(*optimizer, first, hidden);
  };
  run("sgd", [](const Parameters& p) {
    return std::make_unique<optim::SGD>(p, optim::SGDOptions{.momentum = 0.5, .weight_decay = 0.5});
  });
  run("adam",
      [](const Parameters& p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions{.weight_decay = 0.5}); });
  run("adamw",
      [](const Parameters& p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.weight_decay = 0.5}); });
  run("muon",
      [](const Parameters& p) { return std::make_unique<optim::Muon>(p, optim::MuonOptions{.weight_decay = 0.5}); });
}

}  // namespace

TEST_CASE("promise 12: no optimiser moves by a gradient that is not finite, clipped or not; the parameter is named") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {std::nan(""), infinity, -infinity}) {
    for_each_optimiser([&](optim::Optimizer& optimizer, const Variable& first, const Variable& hidden) {
      set_gradient(first, {8, 16});
      set_gradient(hidden, {1, 2, 3, wrong});
      std::map<std::string, Tensor> state = optimizer.state();
      for (auto& [name, tensor] : state) tensor = tensor.clone();
      CHECK(error_of([&] { optimizer.step(0.1); }) == "optimizer: the gradient of parameter h.0.weight is not finite");
      CHECK(error_of([&] { optimizer.step(0.1, 1.0); }) ==
            "clip_grad_norm: the gradient of parameter h.0.weight is not finite");
      CHECK(elements(first.value()) == Numbers{1, 2});
      CHECK(elements(hidden.value()) == Numbers{1, 2, 3, 4});
      for (const auto& [name, tensor] : optimizer.state()) CHECK(same_bits(tensor, state.at(name)));
      CHECK(first.gradient().defined());
      set_gradient(hidden, {1, 2, 3, 1e200});  // its square is infinite
      optimizer.step(0.1);
      CHECK(first.value().at(0) != 1);
      CHECK(hidden.value().at(3) != 4);
      CHECK(std::isfinite(hidden.value().at(3)));
      const double after = hidden.value().at(3);
      set_gradient(hidden, {1, 2, 3, -1e200});
      optimizer.step(0.1);
      CHECK(hidden.value().at(3) != after);
    });
  }
}

TEST_CASE("every element of a gradient is looked at, also in the last piece of a long one") {
  for (const Dtype dtype : {f32, f64}) {
    for (const i64 at : {i64{0}, i64{16'383}, i64{16'384}, i64{40'000}}) {
      Variable w = parameter(zeros({40'001}, dtype), "w");
      optim::SGD sgd({w});
      w.mutable_gradient() = full({40'001}, std::numeric_limits<float>::max(), dtype);
      CHECK(error_of([&] { sgd.step(0); }) == "");
      w.mutable_gradient() = zeros({40'001}, dtype);
      w.mutable_gradient().set(at, std::numeric_limits<double>::infinity());
      CHECK(error_of([&] { sgd.step(0); }) == "optimizer: the gradient of parameter w is not finite");
    }
  }
}

TEST_CASE("no optimiser moves a frozen parameter, whatever gradient it is given, nor counts it when it clips") {
  for_each_optimiser([](optim::Optimizer& optimizer, Variable first, const Variable& hidden) {
    first.set_frozen(true);
    for (int step = 0; step < 2; ++step) {
      set_gradient(first, {std::nan(""), 1});
      set_gradient(hidden, {0, 0, 0, 2});
      CHECK(optim::clip_grad_norm(optimizer.parameters(), 4) == 2);
      if (step == 0)
        optimizer.step(0.1);
      else
        CHECK(optimizer.step(0.1, 4) == 2);
    }
    set_gradient(first, {std::nan(""), 1});
    set_gradient(hidden, {0, 0, 0, 1e300});  // clipped by a factor so small that gradients are scaled first
    CHECK(optimizer.step(0.1, 4) == doctest::Approx(1e300));
    CHECK(elements(first.value()) == Numbers{1, 2});
    CHECK(hidden.value().at(3) != 4);
    for (const auto& [name, tensor] : optimizer.state())
      if (name.ends_with(".first")) CHECK(sum_of_squares(tensor.to(f64)) == 0);
    first.set_frozen(false);
    set_gradient(first, {1, 1});
    optimizer.step(0.1);
    CHECK(first.value().at(0) != 1);
  });
}

namespace {

// Memory runs out while the update of the second parameter is prepared.
struct OutOfMemory : optim::Optimizer {
  explicit OutOfMemory(const Parameters& parameters) : Optimizer(parameters, 0) {}
  std::map<std::string, Tensor> state() const override { return {}; }

 private:
  Ready update(size_t i, const Update&) override {
    check(i == 0, "test", "no memory");
    return {[](i64, i64) {}};
  }
};

}  // namespace

TEST_CASE("a clipped step that fails leaves every gradient as it was") {
  const Variable a = leaf({1, 2}, "a"), b = leaf({3}, "b");
  OutOfMemory optimizer({{"a", a}, {"b", b}});
  for (const double huge : {1e10, 1e300}) {
    set_gradient(a, {huge, 0});
    set_gradient(b, {1});
    CHECK(error_of([&] { optimizer.step(0.1, 1.0); }) == "test: no memory");
    CHECK(elements(a.gradient()) == Numbers{huge, 0});
    CHECK(elements(b.gradient()) == Numbers{1});
  }
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
        "optimizer: weight decay must be 0 or more and finite, got -1");
  CHECK(make({{.parameters = {{"w", w}}, .learning_rate_factor = -1}}) ==
        "optimizer: a group's learning rate factor must be 0 or more and finite, got -1");
}

TEST_CASE("what a step refuses, before anything has moved") {
  const Variable first = leaf({1}, "first");
  Variable second = leaf({1}, "second");
  optim::SGD sgd({first, second});
  set_gradient(first, {1});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(error_of([&] { sgd.step(-1); }) == "optimizer: the learning rate must be 0 or more and finite, got -1");
  CHECK(error_of([&] { sgd.step(infinity); }) == "optimizer: the learning rate must be 0 or more and finite, got inf");
  CHECK(error_of([&] { sgd.step(std::numeric_limits<double>::quiet_NaN()); }) ==
        "optimizer: the learning rate must be 0 or more and finite, got nan");
  second.mutable_gradient() = zeros({2}, f32);
  CHECK(error_of([&] { sgd.step(1); }) ==
        "optimizer: parameter second is f64 [1], its gradient f32 [2]: mutable_gradient was given another tensor");
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
  for (const i32 wrong : {-1, std::numeric_limits<i32>::max()}) {
    state = adam.state();
    state["step.w"] = Tensor::of<i32>({}, {wrong});
    CHECK(error_of([&] { restored.load_state(state); }) ==
          "load_state: step.w is " + std::to_string(wrong) + ", which is no number of updates");
  }
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

namespace {

// Parameters of several sizes, one of them cut into pieces, one without a gradient; the same numbers every time. Muon
// takes the matrix for one inside a layer.
Parameters some_parameters(Dtype dtype) {
  Rng rng(5);
  Parameters all;
  for (const Shape& shape : {Shape{3, 4}, Shape{40'001}, Shape{7}})
    all.push_back({"h." + std::to_string(all.size()) + ".weight", parameter(randn(shape, rng, dtype))});
  all.push_back({"idle", parameter(randn({2}, rng, dtype))});
  return all;
}

void draw_gradients(const Parameters& parameters, Rng& rng) {
  for (NamedParameter p : parameters)
    if (p.name != "idle") p.value.mutable_gradient() = randn(p.value.shape(), rng, p.value.dtype());
}

// Three steps, clipped on the way (`fused`) or before: parameters and state agree to `rounding` times what one
// operation rounds off, norms in every bit.
template <class Make> void check_clipped_step(const Make& make, double max_norm, Dtype dtype, double rounding = 1) {
  const Parameters a = some_parameters(dtype), b = some_parameters(dtype);
  auto fused = make(a), apart = make(b);
  Rng rng_a(6), rng_b(6);
  for (int step = 0; step < 3; ++step) {
    draw_gradients(a, rng_a);
    draw_gradients(b, rng_b);
    const double norm = optim::clip_grad_norm(b, max_norm);
    apart.step(0.05);
    CHECK(fused.step(0.05, max_norm) == norm);
    for (const NamedParameter& p : a) CHECK_FALSE(p.value.gradient().defined());
  }
  const double tolerance = rounding * (dtype == f64 ? 1e-13 : 1e-5);
  const auto check_close = [&](const Tensor& x, const Tensor& y) {
    double worst = 0;
    for (i64 i = 0; i < x.count(); ++i) {
      worst = small::worse(worst, std::fabs(x.at(i) - y.at(i)) / std::max(1.0, std::fabs(y.at(i))));
    }
    CHECK(worst <= tolerance);
  };
  for (size_t i = 0; i < a.size(); ++i) check_close(a[i].value.value(), b[i].value.value());
  for (const auto& [name, tensor] : fused.state()) check_close(tensor, apart.state().at(name));
}

}  // namespace

TEST_CASE("a step that clips on the way equals clipping and a step, for every optimiser") {
  for (const Dtype dtype : {f64, f32}) {
    for (const double max_norm : {1.0, 1e6}) {
      check_clipped_step([](const Parameters& p) { return optim::SGD(p, {.weight_decay = 0.1}); }, max_norm, dtype);
      check_clipped_step([](const Parameters& p) { return optim::SGD(p, {.momentum = 0.9, .weight_decay = 0.1}); },
                         max_norm, dtype);
      check_clipped_step([](const Parameters& p) { return optim::Adam(p, {.weight_decay = 0.1}); }, max_norm, dtype);
      check_clipped_step([](const Parameters& p) { return optim::AdamW(p, {.weight_decay = 0.1}); }, max_norm, dtype);
      // Five steps of Muon's iteration make differences of small singular values up to 3.4445^5 = 485 times as large.
      check_clipped_step([](const Parameters& p) { return optim::Muon(p, {.weight_decay = 0.1}); }, max_norm, dtype,
                         500);
    }
  }
}

TEST_CASE("a step that need not clip has the bits of a step that does not") {
  const Parameters a = some_parameters(f32), b = some_parameters(f32);
  optim::Adam clipped(a), plain(b);
  Rng rng_a(6), rng_b(6);
  draw_gradients(a, rng_a);
  draw_gradients(b, rng_b);
  const double norm = clipped.step(0.05, std::numeric_limits<double>::infinity());
  plain.step(0.05);
  CHECK(norm > 100);
  for (size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i].value.value(), b[i].value.value()));
}

TEST_CASE("what a clipped step refuses, before anything has moved or aged") {
  const Variable first = leaf({1}, "first"), second = leaf({1}, "second");
  optim::Adam adam({first, second});
  const auto error = [&](double gradient, double rate, double max_norm) {
    set_gradient(first, {1});
    set_gradient(second, {gradient});
    const std::string text = error_of([&] { adam.step(rate, max_norm); });
    CHECK(first.value().at(0) == 1);
    CHECK(first.gradient().at(0) == 1);
    CHECK(adam.state().at("step.first").item() == 0);
    return text;
  };
  CHECK(error(1, 0.1, 0) == "clip_grad_norm: max_norm must be positive, got 0");
  CHECK(error(1, -1, 1) == "optimizer: the learning rate must be 0 or more and finite, got -1");
  CHECK(error(std::numeric_limits<double>::quiet_NaN(), 0.1, 1) ==
        "clip_grad_norm: the gradient of parameter second is not finite");
  CHECK(error(std::numeric_limits<double>::infinity(), 0.1, 1) ==
        "clip_grad_norm: the gradient of parameter second is not finite");
}

TEST_CASE("a clipped step has the same bits for any number of threads, for every optimiser") {
  const auto check_bits = [](const auto& make) {
    CHECK(small::same_for_any_threads([&] {
      const Parameters p = some_parameters(f32);
      auto optimizer = make(p);
      Rng rng(6);
      std::vector<Tensor> all;
      for (int step = 0; step < 2; ++step) {
        draw_gradients(p, rng);
        all.push_back(full({1}, optimizer.step(0.05, 1), f64));
      }
      for (const NamedParameter& x : p) all.push_back(x.value.value().reshape({-1}).to(f64));
      for (const auto& [name, tensor] : optimizer.state()) all.push_back(tensor.reshape({-1}).to(f64));
      return concat(all, 0);
    }));
  };
  check_bits([](const Parameters& p) { return optim::SGD(p, {.momentum = 0.9, .weight_decay = 0.1}); });
  check_bits([](const Parameters& p) { return optim::AdamW(p, {.weight_decay = 0.1}); });
  check_bits([](const Parameters& p) { return optim::Muon(p, {.weight_decay = 0.1}); });
}
