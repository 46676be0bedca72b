// Chapter 5. What all optimisers share: the list of parameters, and the loop over it that makes one step.
//
//   for each parameter p with a gradient g:   p <- p - learning_rate * direction(g),   then g is released
// A parameter without a gradient is skipped: it does not move, does not decay, and its moments stay the same. So is a
// frozen one (nn::freeze), whatever gradient it is given. Gradients add up over several calls of `backward` until a
// step uses them, so k micro-batches can make one batch. The learning rate is an argument of each step, so a schedule
// is a plain function: adam.step(noam(step, 512, 4000)).
#pragma once

#include <functional>
#include <map>

#include "optim/parameters.h"

namespace orrery::optim {

/// The base of SGD, Adam, AdamW and Muon.
class Optimizer {
 public:
  /// What one parameter's update starts from.
  struct Update {
    Tensor& parameter;
    const Tensor& gradient;
    double learning_rate, weight_decay;
    double gradient_factor;  ///< the factor of clipping, at most 1
  };
  /// An update that is ready to be made. Until then no number has changed (versions may have risen): if memory runs out
  /// while the next one is prepared, no parameter has moved and nothing counts as a step.
  struct Ready {
    /// Updates elements [begin, end) of the parameter, and what is remembered of them, on any thread.
    std::function<void(i64 begin, i64 end)> move;
    i32* updates = nullptr;  ///< the number of this parameter's updates; grows by one when it is made
  };

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update of every parameter that has a gradient and is not frozen; then all gradients are released.
  /// Errors, before anything moves: a learning rate that is negative or not finite; a gradient that does not fit its
  /// parameter, or is not finite (the message names the parameter); a parameter whose value was replaced since the
  /// optimiser was made; not enough memory. The gradients then stay as they are, until `clear_gradients`.
  void step(double learning_rate);
  /// The same with gradients clipped to a common norm of at most `max_norm` (optim/clip.h). This needs no extra pass:
  /// the update multiplies by the factor. Returns the norm before clipping. Errors: also those of `clip_grad_norm`.
  double step(double learning_rate, double max_norm);
  /// Discards the gradients without a step.
  void clear_gradients();

  /// Every parameter once, in the order given: for clipping, counting, hashing.
  const Parameters& parameters() const { return parameters_; }

  /// What the optimiser remembers from step to step, by name, such as "m.encoder.norm.weight". The tensors are the
  /// optimiser's own: writing to them changes it.
  virtual std::map<std::string, Tensor> state() const = 0;
  /// Copies a state taken from an optimiser of the same kind over the same parameters. Errors: missing or unexpected
  /// names, other shapes or dtypes, a number of updates that is negative or 2^31 - 1; the state is then unchanged.
  void load_state(const std::map<std::string, Tensor>& state);

 protected:
  /// Errors: no parameters; a Variable that is not a parameter; a parameter in two groups; two parameters of the same
  /// name.
  Optimizer(const ParameterGroups& groups, double weight_decay);

  /// Prepares the update of parameter number `i` of the list. Changes no number yet.
  virtual Ready update(size_t i, const Update& u) = 0;

 private:
  void check_gradients(double learning_rate) const;
  void update_all(double learning_rate, double gradient_factor);

  struct Setting {
    double weight_decay, learning_rate_factor;
  };
  Parameters parameters_;
  std::vector<Setting> settings_;  // of each parameter
};

}  // namespace orrery::optim
