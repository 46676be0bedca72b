// Chapter 9. Training a translator: the task that the trainer trains.
//
//   const TranslationRecipe recipe = translation_preset("tiny");
//   const TranslationData data = translation_data({.source = "train.en", .target = "train.de"}, recipe);
//   TranslationTask task(recipe, data);
//   Trainer trainer(task, task.recipe(), task.model().d_model());
// The rest is the loop of apps/training/trainer.h; apps/book/ch9/translator.cpp is a whole program.
#pragma once

#include <cmath>
#include <memory>

#include "apps/tasks/translate/data.h"
#include "apps/tasks/translate/model.h"
#include "apps/tasks/translate/recipe.h"
#include "apps/training/trainer.h"

namespace orrery::translate {

/// A model and sentence pairs. Its loss is smoothed as the recipe says. The validation loss is not, so that it can be
/// compared with others: the mean of -ln p(token) over all validation tokens, the ends of sentences included.
class TranslationTask final : public Task {
 public:
  /// Trains a new model, or the given one. The data must outlive the task.
  TranslationTask(const TranslationRecipe& recipe, const TranslationData& data,
                  std::unique_ptr<TranslationModel> model = nullptr);
  TranslationTask(const TranslationRecipe&, const TranslationData&&,
                  std::unique_ptr<TranslationModel> = nullptr) = delete;  // the data would not outlive it

  /// The recipe, with a number of steps as `evaluate_every` where it was `automatic`.
  const TranslationRecipe& recipe() const { return recipe_; }
  TranslationModel& model() { return *model_; }
  const TranslationModel& model() const { return *model_; }
  const TranslationData& data() const { return data_; }
  const TranslationBatches& batches() const { return training_; }
  /// A greedy translation of one line. Errors: those of `Vocabulary::ids`; a line that is too long.
  std::string translate(const std::string& line) const;

  std::string program() const override { return "translate"; }
  nn::Module& module() override { return model_->module(); }
  std::vector<i64> draw(i64 step, i64 micro_batches) override;
  /// Source and target, without padding.
  i64 tokens_read() const override { return tokens_read_; }
  Variable loss(i64 micro_batch, nn::Pass& pass) override;
  double loss_of_guessing() const override { return std::log(data_.vocabulary.size()); }
  double evaluate() override;
  double seconds_of_evaluation() override;

 private:
  // The sum of the losses of a batch of the validation, and the number of its target tokens.
  std::pair<double, i64> loss_of_validation(i64 batch) const;

  TranslationRecipe recipe_;
  const TranslationData& data_;
  TranslationBatches training_, validation_;
  std::unique_ptr<TranslationModel> model_;
  std::vector<TranslationBatch> drawn_;  // of the current step
  i64 tokens_read_ = 0;
};

}  // namespace orrery::translate
