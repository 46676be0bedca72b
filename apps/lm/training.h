// Chapter 9. Training a GPT on a text, character by character.
//
// Defaults are nanoGPT's recipe for a CPU (github.com/karpathy/nanoGPT, README, "I only have a macbook"): 4 layers of 4
// heads and width 128 without biases, blocks of 64 characters, 12 in a batch, 2,000 steps of AdamW, no dropout; "gets
// us a loss of only 1.88". That loss is an estimate: the mean over 20 batches of random validation blocks, every 250
// steps, of which we report the lowest. The loss over the whole validation text, block after block, is measured at the
// end.
//
// Two things differ from nanoGPT; model, steps, batch, rates, decay and initialisation do not.
//   order     nanoGPT draws each block from anywhere in the text. The 2,000 steps read 1.5 times its length, and still
//             a fifth of it is never seen. Here every block comes once before any comes again (text_data.h).
//   average   nanoGPT judges the parameters of the last step. Here their exponential mean over the steps is judged,
//             saved and asked to write, with AdamW's own beta2 as its memory, as Kingma and Ba (2015, section 7.2,
//             "Temporal averaging") propose it for Adam. The steps themselves do not depend on it.
// Means over seeds 1 to 5, standard deviations in brackets:    whole validation text   lowest estimate
//   as nanoGPT does it, --replacement --average 0              1.913 (0.007)           1.912
//   the default                                                1.900 (0.007)           1.897 (0.016)
//   nanoGPT's recipe in PyTorch, seven seeds                   1.908 (0.010)           1.915
// Five trainings with other random numbers, 1.911 without either: order alone gains 0.005, average alone 0.008, both
// 0.015.
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
  double rate = 1e-3, last_rate = 1e-4;  ///< its peak, and where the cosine ends
  double beta1 = 0.9, beta2 = 0.99;      ///< of AdamW
  double weight_decay = 0.1;             ///< of matrices
  double clip = 1;                       ///< largest norm of the gradient; 0 does not clip
  double average = 0.99;                 ///< beta of the averaged model; 0 has none
  bool replacement = false;              ///< blocks are drawn from anywhere, each time anew
  i64 estimate_every = 250, estimate_batches = 20;
  i64 seed = 1;

  i64 warmup_steps() const { return warmup == automatic ? std::min<i64>(100, steps / 20) : warmup; }
  /// The learning rate of a step, counted from 1.
  double rate_of(i64 step) const;
  /// Errors: numbers that make no training. The model's are its own affair.
  void validate() const;
};

/// Every field but the model and the seed as JSON, and back.
std::string to_json(const LmRecipe& recipe);
LmRecipe lm_recipe(const std::string& json);

/// Where a training stands: all that its further steps depend on besides recipe and text.
struct LmState {
  i64 steps_done = 0;
  u64 blocks = 0, judged = 0;  ///< positions in the random numbers of training and of validation blocks
  i64 best_step = 0;           ///< that of the lowest estimate; 0 before the first
  double best_estimate = std::numeric_limits<double>::infinity();
  /// "parameter.NAME", "average.NAME" if there is an averaged model, "best.NAME" of the best step where that is an
  /// earlier one, all that AdamW remembers, and "losses" f64 [steps_done].
  TensorMap tensors;
};

/// The mean loss of `model` over a text, in blocks of its length that follow one another; every character but the first
/// counts once. Error: a text of less than two characters.
double loss_over(const nn::Gpt& model, const Tensor& text);

/// A model in training. One call of `step` is one update; which blocks it sees is a function of the seed alone.
class LmTraining {
 public:
  LmTraining(const LmRecipe& recipe, const TextData& data);
  /// Trains on one batch and returns its loss for each character. Errors, before any parameter moves: a loss or a
  /// gradient that is not finite, naming the operation that first made it so.
  double step();
  i64 steps_done() const { return steps_done_; }
  i64 tokens_per_step() const { return recipe_.batch * recipe_.model.max_len; }
  /// Seconds that the rest of the steps and all evaluations should take, from a trial that changes nothing.
  double measure();

  /// The mean loss over random blocks of the validation text, new ones each time. The model of the lowest is
  /// remembered.
  double estimate();
  i64 best_step() const { return best_step_; }
  double best_estimate() const { return best_estimate_; }
  /// The loss over the whole validation text.
  double validation_loss() const { return loss_over(model(), data_.validation); }
  /// Ends the training with the model of the lowest estimate or the last one, whichever has the lower
  /// `validation_loss`, and returns that.
  double finish_with_best();
  /// What the model writes, a function of seed and step: `count` characters, drawn at temperature 0.8.
  std::string sample(i64 count) const;

  /// Training that goes on from a state equals to the bit training that was never interrupted. A state shares memory
  /// with the training: use it before the next step. Error: a state of another recipe; the training is then of no use.
  LmState state() const;
  void load_state(const LmState& state);

  /// What is judged, saved and asked to write: the averaged model, or without one the model that is trained.
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
  // Takes the step just made into the average.
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
