// Chapter 0. Training and examining the toy: the loop everything else in this project serves.
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
  double cooldown = 0.5;                         ///< last part of the steps, in which the rate falls linearly to 0
  double smoothing = 0.1;                        ///< of the labels
  double clip = 1;                               ///< largest norm of the gradient; 0 does not clip
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;  ///< Adam's, as the paper's section 5.3 has them
  i64 seed = 1;

  /// The model's sizes that follow from the task filled in.
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
  double accuracy = 0;  ///< part of the target tokens that were the likeliest
};

/// A model in training. One call of `step` is one update; the random stream of the data is a function of the seed
/// alone.
class ToyTraining {
 public:
  explicit ToyTraining(const ToyRecipe& recipe);
  /// Trains on one fresh batch. Errors, before any parameter moves: a loss or a gradient that is not finite, naming the
  /// operation that first made it so.
  ToyStep step();
  /// Seconds that the rest of the steps and an exam of `exam_size` should take, from a trial that changes nothing.
  double measure(i64 exam_size);
  i64 steps_done() const { return steps_done_; }
  i64 tokens_per_step() const;
  nn::Transformer& model() { return model_; }
  /// A fingerprint of all losses so far, the parameters and the optimiser's state.
  std::string hash() const;

 private:
  struct Batch {
    Tensor source, input, gold;  // i32: encoder input, decoder input, what it should say
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

/// What the model answers to each source.
std::vector<Sequence> answers(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources);

/// An examination on sequences that were never trained on.
struct ToyExam {
  std::vector<Sequence> sources, answers;
  i64 right = 0;
};
ToyExam examine(const nn::Transformer& model, const ToyTask& task, i64 count, i64 seed);

}  // namespace orrery
