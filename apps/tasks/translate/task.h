// Chapter 9. Training a translator: the task that the trainer trains.
//
//   const TranslationRecipe recipe = translation_preset("tiny");
//   const TranslationData data = translation_data({.source = "train.en", .target = "train.de"}, recipe);
//   TranslationTask task(recipe, data);
//   Trainer trainer(task);
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

  TranslationModel& model() { return *model_; }
  const TranslationModel& model() const { return *model_; }
  const TranslationData& data() const { return data_; }
  const TranslationBatches& batches() const { return training_; }
  /// A greedy translation of one line. Errors: those of `Vocabulary::ids`; a line that is too long.
  std::string translate(const std::string& line) const;

  std::string program() const override { return "translate"; }
  nn::Module& module() override { return model_->module(); }
  /// With a number of steps as `evaluate_every` where it was `automatic`, and the model's width.
  TranslationRecipe& recipe() override { return recipe_; }
  /// Counts target tokens; reads source and target, without padding.
  std::vector<Items> draw(i64 step, i64 micro_batches) override;
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override;
  double mean_items_read() const override;
  double loss_of_guessing() const override { return std::log(data_.vocabulary.size()); }
  std::vector<Score> evaluate() override { return {{"validation loss", validation_loss()}}; }
  double seconds_of_evaluation() override;
  /// Of the model as it is.
  double validation_loss() const;

 private:
  // The sum of the losses of a batch of the validation, and the number of its target tokens.
  std::pair<double, i64> loss_of_validation(i64 batch) const;

  TranslationRecipe recipe_;
  const TranslationData& data_;
  TranslationBatches training_, validation_;
  std::unique_ptr<TranslationModel> model_;
  std::vector<TranslationBatch> drawn_;  // of the current step
};

}  // namespace orrery::translate
