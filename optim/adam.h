// Chapter 5. Adam: each number of a parameter moves by about the learning rate, whatever the size of its gradient.
//
// Update t = 1, 2, ... of a parameter p with the gradient g:
//   m <- beta1 m + (1 - beta1) g                    mean of the gradient              m_hat = m / (1 - beta1^t)
//   v <- beta2 v + (1 - beta2) g^2                  mean of its square                v_hat = v / (1 - beta2^t)
//   p <- p - learning_rate m_hat / (sqrt(v_hat) + eps)
// "Adam: a method for stochastic optimization" (Kingma, Ba 2015), algorithm 1. m and v start at 0, so they are too
// small at first; dividing by 1 - beta^t corrects this. In Adam, weight decay adds weight_decay p to g. AdamW
// ("Decoupled weight decay regularization", Loshchilov, Hutter 2019) shrinks p itself instead:
//   p <- p - learning_rate weight_decay p
// In Adam that part of g is divided by sqrt(v) like the rest: weights with large gradients shrink less. In AdamW all
// shrink by the same fraction.
// Formulas and defaults are those of torch.optim. The paper (Vaswani et al., section 5.3) uses "beta1 = 0.9, beta2 =
// 0.98 and eps = 10^-9". A |g| above 9.2e18 in f32, or 6.7e153 in f64, counts as that much: with an infinite g^2, p
// would never move again.
// Read next: optim/adam.cpp
#pragma once

#include "optim/optimizer.h"

namespace orrery::optim {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999;  ///< in [0, 1)
  double eps = 1e-8;                  ///< 0 or more; with 0, a number whose gradients were all 0 becomes NaN
  double weight_decay = 0;
};

/// Where weight decay acts: in Adam on the gradient, in AdamW on the parameter itself.
enum class WeightDecay { into_gradient, decoupled };

/// What Adam keeps of one parameter from step to step.
struct Moments {
  Tensor m, v;
  Tensor step;  ///< i32 scalar: counts the updates of this parameter, the steps in which it has a gradient

  Moments() = default;
  /// Zeros for a parameter of this shape and dtype.
  explicit Moments(const Tensor& parameter);
  /// Adds "m.NAME", "v.NAME" and "step.NAME".
  void add_to(std::map<std::string, Tensor>& state, const std::string& name) const;
};

/// Errors of `adam`: a beta outside [0, 1), or an eps that is negative or not finite.
void check_options(const AdamOptions& options);
/// The next update of one parameter. The weight decay is that of the update, not of the options.
Optimizer::Ready adam_update(Moments& moments, const Optimizer::Update& u, const AdamOptions& options,
                             WeightDecay decay);

class Adam : public Optimizer {
 public:
  /// Errors: those of Optimizer and `check_options`; the same for AdamW.
  explicit Adam(const ParameterGroups& parameters, const AdamOptions& options = {});
  /// For each parameter: "m.NAME", "v.NAME" and "step.NAME".
  std::map<std::string, Tensor> state() const override;

 protected:
  Adam(const ParameterGroups& parameters, const AdamOptions& options, WeightDecay decay);

 private:
  Ready update(size_t i, const Update& u) override;

  AdamOptions options_;
  WeightDecay decay_;
  std::vector<Moments> moments_;  // of each parameter
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999;  ///< in [0, 1)
  double eps = 1e-8;
  double weight_decay = 0.01;
};

class AdamW final : public Adam {
 public:
  explicit AdamW(const ParameterGroups& parameters, const AdamWOptions& options = {})
      : Adam(parameters,
             {.beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps, .weight_decay = options.weight_decay},
             WeightDecay::decoupled) {}
};

}  // namespace orrery::optim
