// Chapter 9. The training step that is measured: forward, loss, backward, clipping, Adam.
//
// The batch of an encoder-decoder has rows of different lengths, like a real one: every tenth source and target is two
// tokens shorter. Its labels are smoothed. A GPT reads running text, all of which counts. The tokens are random and the
// same in every step, since speed does not depend on them.
#pragma once

#include <variant>

#include "apps/measure/bench/configs.h"
#include "autograd/ops/cross_entropy.h"
#include "nn/models/transformer.h"
#include "optim/adam.h"

namespace orrery {

/// The norm that gradients are clipped to, and the learning rate of Adam.
inline constexpr double bench_max_norm = 1.0, bench_learning_rate = 1e-4;

/// A model of one configuration with its batch and its optimiser.
class BenchTraining {
 public:
  /// Errors: `dropout` outside [0, 1); more memory than this machine has.
  BenchTraining(const BenchConfig& config, double dropout, i64 seed);

  /// One training step; returns the loss before the update.
  double step() {
    const double loss = pass();
    update();
    return loss;
  }
  /// The first part, forward and backward: leaves a gradient at every parameter and returns the loss. Gradients are
  /// multiplied by `dy`, the gradient of the loss itself.
  double pass(double dy = 1);
  /// The second part: clips the gradients and updates the parameters.
  void update();
  /// The loss for the batch of the last `pass`; the same bits until an update.
  Variable loss() const;
  optim::Adam& optimizer() { return adam_; }

  i64 parameter_count() {
    return std::visit([](auto& model) { return model.parameter_count(); }, model_);
  }

 private:
  u64 seed_;
  i64 steps_begun_ = 0;
  Rng rng_;
  std::variant<nn::Transformer, LanguageModel> model_;
  optim::Adam adam_;
  CrossEntropyOptions loss_options_;
  Tensor source_, input_, labels_;  // i32 [B, S], [B, T], [B, T]: `labels_` is one token ahead of `input_`
};

}  // namespace orrery
