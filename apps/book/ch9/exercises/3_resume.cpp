// Chapter 9. Exercise 9.3: a training that resumes.
//
// my_state gives everything that the next step of a training depends on, as tensors by name; my_resume puts it into a
// new training, which must then make the same steps, to the bit. The first training goes on meanwhile: a state has
// memory of its own. adam.state() and adam.load_state(tensors) are the optimiser's. full({1}, x, f64) holds one number.
// Grade it:  apps/run exercise 9.3
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
  for (const auto& [name, parameter] : training.layer.parameters()) state["parameter." + name] = parameter.value();
  return state;  // YOUR CODE: the next step depends on more than the parameters
}

void my_resume(MyTraining& training, const MyState& state) {
  for (auto& [name, parameter] : training.layer.parameters())
    copy_into(parameter.mutable_value(), state.at("parameter." + name));
  // YOUR CODE
}
