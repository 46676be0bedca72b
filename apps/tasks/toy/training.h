// Chapter 0. Training and examining the toy: its recipe, its batches and its exam.
//
// The models of `orrery toy` in files: what --save writes, and how --load answers.
//
//   $ echo headache | orrery toy --load reverse.safetensors
//   e h c a d a e h
#pragma once

#include <cmath>
#include <string>

#include "apps/tasks/toy/task.h"
#include "apps/training/trainer.h"
#include "core/files/safetensors.h"
#include "nn/models/transformer.h"

namespace orrery {

/// Everything that decides how the toy is trained. Its rate is a factor of Noam's.
struct ToyRecipe : TrainingRecipe {
  ToyTask task;
  nn::TransformerConfig model{.layer = {.d_model = 64,
                                        .num_heads = 4,
                                        .d_ff = 128,
                                        .dropout = 0.1,
                                        .attention_dropout = 0.0,  // as the paper, section 5.4: on sub-layers' outputs
                                        .activation_dropout = 0.0},
                              .num_encoder_layers = 2,
                              .num_decoder_layers = 2};
  i64 batch = 64;
  double smoothing = 0.1;  ///< of the labels

  ToyRecipe() : TrainingRecipe{.rate = 1.5, .cooldown = 0.5} {}
  /// The model, with the sizes that follow from the task.
  nn::TransformerConfig config() const;
};

/// The copy task as the Annotated Transformer sets it up: 10 symbols (with padding a vocabulary of 11), length 10, its
/// model of width 512, 20 epochs of 20 batches of 80, Noam with 400 steps of warm-up at half the rate, no smoothing, no
/// clipping.
ToyRecipe annotated_recipe();

/// The paper's model, small, and its batches. The random numbers of the data depend only on the seed. The recipe, whose
/// width it sets, must outlive the task.
class ToyTrainingTask final : public Task {
 public:
  explicit ToyTrainingTask(ToyRecipe& recipe);

  std::string program() const override { return "toy"; }
  nn::Module& module() override { return model; }
  ToyRecipe& recipe() override { return recipe_; }
  std::vector<Items> draw(i64 step, i64 micro_batches) override;
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override;
  double loss_of_guessing() const override { return std::log(recipe_.task.vocab_size()); }
  std::vector<Score> evaluate() override { return {{"validation loss", validation_loss()}}; }
  std::vector<u64> positions() const override { return {data_.position()}; }
  void go_to(const std::vector<u64>& positions) override { data_ = Rng(data_.seed(), positions.at(0)); }

  /// Over the same sequences each time, none of which is ever trained on; without label smoothing.
  double validation_loss() const;

  nn::Transformer model;

 private:
  struct Batch {
    Tensor source, input, gold;  // i32: encoder input, decoder input, labels
  };
  Batch next_batch(Rng& numbers, bool held_out) const;

  ToyRecipe& recipe_;
  Rng data_;
  std::vector<Batch> batches_;  // of the step that was drawn
};

/// The toy and its trainer.
struct ToyTraining {
  explicit ToyTraining(const ToyRecipe& how) : recipe(how), task(recipe), trainer(task) {}

  ToyRecipe recipe;
  ToyTrainingTask task;
  Trainer trainer;
};

/// The model's answer to each source.
std::vector<Sequence> answers(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources);

/// An examination on sequences that were never trained on.
struct ToyExam {
  std::vector<Sequence> sources, answers;
  i64 right = 0;
};
ToyExam examine(const nn::Transformer& model, const ToyTask& task, i64 count, i64 seed);

/// What a saved model says about itself: its configuration and its task. The file is all that is needed to rebuild it.
Metadata metadata_of(const nn::Transformer& model, const ToyTask& task);

/// What a file that `orrery toy --save` wrote holds. Errors: another file.
struct SavedToy {
  ToyTask task;
  nn::Transformer model;
};
SavedToy load_toy(const std::string& path);

/// Answers each line of stdin on stdout, with the model in the file `path`; returns the exit code. For a line that
/// cannot be answered it prints one line on stderr and continues; for a length that was not trained it prints a
/// warning. On a terminal it says what to type. Errors: a file that `orrery toy` did not save.
int answer_lines(const std::string& path);

}  // namespace orrery
