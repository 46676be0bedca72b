// Chapter 9. A wrong answer to exercise 9.3: Adam begins anew.
// Expect: FAILED  four steps, and four more after resuming
#include <map>
#include <string>

#include "core/tensor_ops.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

struct MyTraining {
  Rng weights{1}, data{9};
  nn::Linear layer{3, 3, weights};
  optim::Adam adam{layer.parameters()};
  i64 steps_done = 0;

  double rate() const { return optim::noam(steps_done, 4, 6); }  // of the last step
  void step() {
    const Variable x = constant(randn({4, 3}, data)), difference = layer(x) - x;
    backward(sum(difference * difference));
    ++steps_done;
    adam.step(rate());
  }
};

using MyState = std::map<std::string, Tensor>;

MyState my_state(MyTraining& training) {
  MyState state;
  for (const auto& [name, parameter] : training.layer.parameters())
    state["parameter." + name] = parameter.value().clone();
  state["step"] = full({1}, static_cast<double>(training.steps_done), f64);
  state["position"] = full({1}, static_cast<double>(training.data.position()), f64);
  return state;
}

void my_resume(MyTraining& training, const MyState& state) {
  for (auto& [name, parameter] : training.layer.parameters())
    copy_into(parameter.mutable_value(), state.at("parameter." + name));
  training.steps_done = static_cast<i64>(state.at("step").item());
  training.data = Rng(training.data.seed(), static_cast<u64>(state.at("position").item()));
}
