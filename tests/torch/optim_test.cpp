// Chapter 5. Equal to PyTorch: optimisers and clipping fed the same 100 gradients, and every schedule step by step.
#include "optim/optim.h"

#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

namespace {

// The parameters of a small network, and the gradients PyTorch recorded while it trained: [100, ...] for each.
struct Recording {
  const Case recorded{"optimizers", "recorded"};
  Parameters parameters;
  TensorMap gradients = recorded.role("gradient");

  explicit Recording(Dtype dtype = f64) {
    for (const auto& [name, value] : recorded.role("parameter")) {
      parameters.push_back({name, parameter(value.clone().to(dtype), name)});
    }
    REQUIRE(parameters.size() == gradients.size());
  }
  i64 steps() const { return gradients.begin()->second.size(0); }
  void set_gradients(i64 step) {
    for (NamedParameter& p : parameters) {
      const Tensor g = gradients.at(p.name).rows(step - 1, step).reshape(p.value.shape());
      p.value.mutable_gradient() = g.clone().to(p.value.dtype());
    }
  }
};

// After 1, 10 and 100 steps the parameters are those of the case. `prepare` runs between the gradients and the step.
template <class Optimizer, class Prepare>
void check_steps(const Case& c, Recording& recording, Optimizer&& optimizer, double rate, const Prepare& prepare) {
  REQUIRE(recording.steps() == 100);
  for (i64 step = 1; step <= recording.steps(); ++step) {
    recording.set_gradients(step);
    prepare(step);
    optimizer.step(rate);
    if (step != 1 && step != 10 && step != 100) continue;
    for (const NamedParameter& p : recording.parameters) {
      INFO(p.name, " after step ", step);
      CHECK(difference(p.value.value(), c.at("after_" + std::to_string(step) + "." + p.name)) == "");
    }
  }
}

// After all steps, f32 differs from f64 by at most 1e-6 times the largest parameter.
template <class Optimizer>
void check_f32_steps(Recording& single, const Recording& exact, Optimizer&& optimizer, double rate) {
  for (i64 step = 1; step <= single.steps(); ++step) {
    single.set_gradients(step);
    optimizer.step(rate);
  }
  double limit = 0;
  for (const NamedParameter& p : exact.parameters) limit = std::max(limit, 1e-6 * largest(p.value.value()));
  for (size_t i = 0; i < exact.parameters.size(); ++i) {
    INFO(exact.parameters[i].name, " in f32");
    CHECK(largest(single.parameters[i].value.value().to(f64) - exact.parameters[i].value.value()) <= limit);
  }
}

template <class Optimizer, class Options>
void check_optimizer(const std::string& name, const Options& options, double rate) {
  INFO(name);
  Recording exact(f64), single(f32);
  check_steps(Case("optimizers", name), exact, Optimizer(exact.parameters, options), rate, [](i64) {});
  check_f32_steps(single, exact, Optimizer(single.parameters, options), rate);
}

// `rate(step)` for steps 1, 2, ... is what the case holds from number `first` on.
template <class Schedule> void check_schedule(const std::string& name, const Schedule& rate, i64 first = 0) {
  INFO(name);
  const Case c("schedules", name);
  const Tensor expected = c.at("rates").rows(first, c.at("rates").size(0));
  Tensor rates = zeros(expected.shape(), f64);
  for (i64 step = 1; step <= rates.count(); ++step) rates.write<double>()[step - 1] = rate(step);
  CHECK(difference(rates, expected) == "");
}

}  // namespace

TEST_CASE("promise 9: SGD is torch.optim.SGD") {
  check_optimizer<optim::SGD>("sgd", optim::SGDOptions{}, 0.05);
  check_optimizer<optim::SGD>("sgd_weight_decay", optim::SGDOptions{.weight_decay = 0.02}, 0.05);
  check_optimizer<optim::SGD>("sgd_momentum", optim::SGDOptions{.momentum = 0.9}, 0.05);
  check_optimizer<optim::SGD>("sgd_momentum_weight_decay", optim::SGDOptions{.momentum = 0.9, .weight_decay = 0.02},
                              0.05);
}

TEST_CASE("promise 9: Adam is torch.optim.Adam") {
  check_optimizer<optim::Adam>("adam", optim::AdamOptions{}, 0.01);
  check_optimizer<optim::Adam>(
      "adam_weight_decay", optim::AdamOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.02}, 0.01);
}

TEST_CASE("promise 9: AdamW is torch.optim.AdamW, with groups too") {
  check_optimizer<optim::AdamW>("adamw", optim::AdamWOptions{}, 0.01);
  Recording recording;
  optim::AdamW adam(optim::decay_matrices(recording.parameters, 0.1), {.beta2 = 0.98, .eps = 1e-9});
  check_steps(Case("optimizers", "adamw_groups"), recording, adam, 0.01, [](i64) {});
}

TEST_CASE("promise 9: Muon is torch.optim.Muon without its rounding to bfloat16, and AdamW for what is no matrix") {
  check_optimizer<optim::Muon>("muon", optim::MuonOptions{.momentum = 0.9, .weight_decay = 0.1}, 0.01);
}

TEST_CASE("promise 9: clip_grad_norm is torch.nn.utils.clip_grad_norm_") {
  const Case c("optimizers", "clipped_sgd");
  Recording recording;
  Tensor norms = zeros({recording.steps()}, f64);
  i64 clipped = 0;
  check_steps(c, recording, optim::SGD(recording.parameters), 0.05, [&](i64 step) {
    norms.write<double>()[step - 1] = optim::clip_grad_norm(recording.parameters, 1.0);
    clipped += norms.at(step - 1) > 1;
  });
  CHECK(difference(norms, c.at("norms")) == "");
  CHECK(clipped > 0);
  CHECK(clipped < recording.steps());
}

TEST_CASE("promise 9: schedules are PyTorch's, or LambdaLR of their published formula") {
  check_schedule("constant", [](i64 step) { return optim::constant(step, 0.3); });
  check_schedule("noam", [](i64 step) { return optim::noam(step, 64, 40); });
  check_schedule("inverse_sqrt", [](i64 step) { return optim::inverse_sqrt(step, 5e-4, 16, 1e-7); });
  check_schedule("warmup_cosine", [](i64 step) { return optim::warmup_cosine(step, 1e-3, 20, 100, 1e-5); });
  check_schedule("linear_cooldown", [](i64 step) { return optim::linear_cooldown(step, 100, 60); });
  // Without warm-up, ours has left the peak at step 1; CosineAnnealingLR starts on it.
  check_schedule(
      "cosine", [](i64 step) { return optim::warmup_cosine(step, 1e-3, 0, 80); }, 1);
}
