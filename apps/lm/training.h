// Chapter 9. Training a GPT on a text, character by character.
//
// The defaults are nanoGPT's recipe for a CPU (github.com/karpathy/nanoGPT, README, "I only have a macbook"): 4 layers
// with 4 heads and d_model 128, without biases, blocks of 64 characters, 12 in a batch, 2,000 steps of AdamW, no
// dropout; "gets us a loss of only 1.88". That loss is an estimate: the mean over 20 batches of random validation
// blocks. It is measured every 250 steps, and the lowest estimate is reported. At the end we also measure the loss over
// the whole validation text, block after block.
//
// Two things differ from nanoGPT; model, steps, batch, rates, decay and initialisation do not.
//   order     nanoGPT draws each block from anywhere in the text. Its 2,000 steps read 1.5 times the length of the
//             text, yet never see a fifth of it. Here every block comes once before any comes again (text_data.h).
//   average   nanoGPT evaluates the parameters of the last step. Here their exponential mean over the steps is
//             evaluated, saved and used for sampling, with AdamW's own beta2 as its decay, as Kingma and Ba (2015,
//             section 7.2, "Temporal averaging") propose for Adam. The steps themselves do not depend on it.
// What both gain: apps/bench/README.md.
// Serves: nn/models/gpt.h
#pragma once

#include <limits>
#include <optional>

#include "apps/lm/text_data.h"
#include "core/files/safetensors.h"
#include "nn/models/gpt.h"
#include "optim/adam.h"

namespace orrery {

/// Everything that decides how a model is trained.
struct LmRecipe {
  static constexpr i64 automatic = -1;
  nn::GptConfig model = nn::gpt_preset("nanogpt");  ///< vocab_size follows from the text; max_len is the block
  i64 steps = 2000, batch = 12;
  i64 warmup = automatic;                ///< steps in which the rate rises; automatic: a twentieth of all, at most 100
  double rate = 1e-3, last_rate = 1e-4;  ///< the peak of the rate, and the end of its cosine
  double beta1 = 0.9, beta2 = 0.99;      ///< of AdamW
  double weight_decay = 0.1;             ///< of matrices
  double clip = 1;                       ///< largest norm of the gradient; 0 does not clip
  double average = 0.99;                 ///< decay of the averaged model; 0: there is none
  bool replacement = false;              ///< each block is drawn from anywhere in the text
  i64 estimate_every = 250, estimate_batches = 20;
  i64 seed = 1;

  i64 warmup_steps() const { return warmup == automatic ? std::min<i64>(100, steps / 20) : warmup; }
  /// The learning rate of a step, counted from 1.
  double rate_of(i64 step) const;
  /// Errors: numbers with which no training is possible. The model is not checked here.
  void validate() const;
};

/// Every field except the model and the seed as JSON, and back.
std::string to_json(const LmRecipe& recipe);
LmRecipe lm_recipe(const std::string& json);

/// The state of a training: everything that its further steps depend on, except recipe and text.
struct LmState {
  i64 steps_done = 0;
  u64 blocks = 0, judged = 0;  ///< positions in the random numbers of training and of validation blocks
  i64 best_step = 0;           ///< the step of the lowest estimate; 0 before the first
  double best_estimate = std::numeric_limits<double>::infinity();
  /// "parameter.NAME"; "average.NAME" if there is an averaged model; "best.NAME" of the best step if it is an earlier
  /// one; the state of AdamW; and "losses" f64 [steps_done].
  TensorMap tensors;
};

/// The mean loss of `model` over a text, in consecutive blocks of the model's length. Every character except the first
/// counts once. Error: a text of fewer than two characters.
double loss_over(const nn::Gpt& model, const Tensor& text);

/// A model in training. One call of `step` is one update. Which blocks it sees depends only on the seed.
class LmTraining {
 public:
  LmTraining(const LmRecipe& recipe, const TextData& data);
  /// Trains on one batch and returns the mean loss of its characters. Error, before any parameter changes: the loss or
  /// a gradient is not finite; the message names the first operation with such a result.
  double step();
  i64 steps_done() const { return steps_done_; }
  i64 tokens_per_step() const { return recipe_.batch * recipe_.model.max_len; }
  /// Seconds that the remaining steps and all evaluations will take, estimated by a trial that changes nothing.
  double measure();

  /// The mean loss over random blocks of the validation text, new ones each time. The model with the lowest estimate is
  /// kept.
  double estimate();
  i64 best_step() const { return best_step_; }
  double best_estimate() const { return best_estimate_; }
  /// The loss over the whole validation text.
  double validation_loss() const { return loss_over(model(), data_.validation); }
  /// Ends the training with the model of the lowest estimate or with the last one, whichever has the lower
  /// `validation_loss`. Returns that loss.
  double finish_with_best();
  /// A sample of `count` characters at temperature 0.8. It depends only on seed and step.
  std::string sample(i64 count) const;

  /// A training that continues from a state gives the same bits as one that was never interrupted. A state shares
  /// memory with the training, so use it before the next step. Error: a state of another recipe. Discard the training
  /// then.
  LmState state() const;
  void load_state(const LmState& state);

  /// The model that is evaluated, saved and sampled: the averaged model, or without one the trained model.
  nn::Gpt& model() { return average_ ? *average_ : model_; }
  const nn::Gpt& model() const { return average_ ? *average_ : model_; }
  const LmRecipe& recipe() const { return recipe_; }
  const Alphabet& alphabet() const { return data_.alphabet; }
  /// A fingerprint of all losses so far, the parameters of the trained model and the optimiser's state.
  std::string hash() const;

 private:
  Variable loss_of(const TextBatch& batch) const;
  double mean_loss(Rng& numbers) const;
  TextBatch next_batch(Rng& numbers);
  // Adds the parameters of the last step to the average.
  void average_parameters();

  LmRecipe recipe_;
  TextData data_;
  Rng weights_, blocks_, judged_;
  ShuffledBlocks shuffled_;
  nn::Gpt model_;
  std::optional<nn::Gpt> average_;
  Parameters trained_, judged_parameters_;  // of `model_` and of `model()`
  optim::AdamW adam_;
  i64 steps_done_ = 0, best_step_ = 0;
  double best_estimate_ = std::numeric_limits<double>::infinity();
  TensorMap best_;  // parameters of `model()` at that step
  std::vector<double> losses_;
};

}  // namespace orrery
