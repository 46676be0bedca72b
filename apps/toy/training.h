// Chapter 0. Training and examining the toy: the loop for which everything else in this project exists.
//
// Serves: apps/toy/toy.cpp
#pragma once

#include "apps/toy/task.h"
#include "nn/models/transformer.h"
#include "optim/adam.h"

namespace orrery {

/// Everything that decides how the toy is trained.
struct ToyRecipe {
  ToyTask task;
  nn::TransformerConfig model{.layer = {.d_model = 64,
                                        .num_heads = 4,
                                        .d_ff = 128,
                                        .dropout = 0.1,
                                        .attention_dropout = 0.0,  // as the paper, section 5.4: on sub-layers' outputs
                                        .activation_dropout = 0.0},
                              .num_encoder_layers = 2,
                              .num_decoder_layers = 2};
  i64 steps = 3000, batch = 64;
  i64 warmup = 1000;                             ///< steps of Noam's warm-up
  double rate_factor = 1.5;                      ///< multiplies Noam's rate
  double cooldown = 0.5;                         ///< share of the steps, the last ones, in which the rate falls to 0
  double smoothing = 0.1;                        ///< of the labels
  double clip = 1;                               ///< largest norm of the gradient; 0 does not clip
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;  ///< of Adam, as in the paper, section 5.3
  i64 seed = 1;

  /// The model, with the sizes that follow from the task.
  nn::TransformerConfig config() const;
  /// The learning rate of a step, counted from 1.
  double rate(i64 step) const;
};

/// The copy task as the Annotated Transformer sets it up: 11 symbols, length 10, its model of width 512, 20 epochs of
/// 20 batches of 80, Noam with 400 steps of warm-up at half the rate, no smoothing, no clipping.
ToyRecipe annotated_recipe();

/// What one step did.
struct ToyStep {
  double loss = 0;      ///< per target token
  double accuracy = 0;  ///< share of the target tokens that had the highest score
};

/// A model in training. One call of `step` is one update. The random numbers of the data depend only on the seed.
class ToyTraining {
 public:
  explicit ToyTraining(const ToyRecipe& recipe);
  /// Trains on one new batch. Error, before any parameter changes: the loss or a gradient is not finite; the message
  /// names the first operation with such a result.
  ToyStep step();
  /// Seconds that the remaining steps and an exam of `exam_size` will take, estimated by a trial that changes nothing.
  double measure(i64 exam_size);
  i64 steps_done() const { return steps_done_; }
  i64 tokens_per_step() const;
  nn::Transformer& model() { return model_; }
  /// A fingerprint of all losses so far, the parameters and the optimiser's state.
  std::string hash() const;

 private:
  struct Batch {
    Tensor source, input, gold;  // i32: encoder input, decoder input, labels
  };
  Batch draw(Rng& data) const;
  Variable loss_of(const Batch& batch, ToyStep* result = nullptr) const;

  ToyRecipe recipe_;
  Rng weights_, data_;
  nn::Transformer model_;
  optim::Adam adam_;
  i64 steps_done_ = 0;
  std::vector<double> losses_;
};

/// The model's answer to each source.
std::vector<Sequence> answers(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources);

/// An examination on sequences that were never trained on.
struct ToyExam {
  std::vector<Sequence> sources, answers;
  i64 right = 0;
};
ToyExam examine(const nn::Transformer& model, const ToyTask& task, i64 count, i64 seed);

}  // namespace orrery
