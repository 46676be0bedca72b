// Chapter 5. SGD: stochastic gradient descent, with momentum.
//
// A step of a parameter p with the gradient g:
//   g <- g + weight_decay p
//   b <- momentum b + g              (b starts at 0; without momentum b = g)
//   p <- p - learning_rate b
// The same as torch.optim.SGD without dampening and without Nesterov's momentum. Momentum keeps a fraction of every
// earlier step, so steps in the same direction add up and steps in alternating directions cancel (Polyak 1964).
#pragma once

#include "optim/optimizer.h"

namespace orrery::optim {

struct SGDOptions {
  double momentum = 0;  ///< in [0, 1)
  double weight_decay = 0;
};

class SGD final : public Optimizer {
 public:
  /// Errors: those of Optimizer; a momentum outside [0, 1).
  explicit SGD(const ParameterGroups& parameters, const SGDOptions& options = {});
  /// "momentum.NAME" for each parameter; empty without momentum.
  std::map<std::string, Tensor> state() const override;

 private:
  Ready update(size_t i, const Update& u) override;

  SGDOptions options_;
  std::vector<Tensor> momentum_;  // b of each parameter
};

}  // namespace orrery::optim
