// Chapter 9. Training a translator: batches and losses.
#include "apps/tasks/translate/task.h"

#include "apps/program/stopwatch.h"
#include "apps/training/random_numbers.h"
#include "core/error.h"

namespace orrery::translate {
namespace {

const TranslationRecipe& checked(const TranslationRecipe& recipe) {
  recipe.validate();
  return recipe;
}

}  // namespace

TranslationTask::TranslationTask(const TranslationRecipe& recipe, const TranslationData& data,
                                 std::unique_ptr<TranslationModel> model)
    : recipe_(checked(recipe)),
      data_(data),
      training_(data.training, recipe.batch_tokens, random_numbers(recipe.seed, Purpose::training)),
      validation_(data.validation, recipe.batch_tokens, random_numbers(recipe.seed, Purpose::held_out)),
      model_(std::move(model)) {
  if (!model_)
    model_ = new_model(recipe.with_vocabulary(data.vocabulary.size()), random_numbers(recipe.seed, Purpose::weights));
  check(model_->vocabulary_size() == data.vocabulary.size(), program(), "the model has ", model_->vocabulary_size(),
        " tokens and the vocabulary ", data.vocabulary.size());
  recipe_.width = model_->d_model();
  if (recipe.evaluate_every == TranslationRecipe::automatic)
    recipe_.evaluate_every = (training_.in_epoch() + recipe.micro_batches - 1) / recipe.micro_batches;
}

std::string TranslationTask::translate(const std::string& line) const {
  const std::vector<i32> ids = data_.vocabulary.ids(line);
  check(static_cast<i64>(ids.size()) < model_->most_tokens(), program(), "the line has ", ids.size(),
        " tokens, more than the model's ", model_->most_tokens() - 1);
  return greedy_translations(*model_, data_.vocabulary, {ids})[0];
}

std::vector<Items> TranslationTask::draw(i64 step, i64 micro_batches) {
  drawn_.clear();
  std::vector<Items> items;
  for (i64 i = 0; i < micro_batches; ++i) {
    const TranslationBatch& batch = drawn_.emplace_back(training_.batch((step - 1) * micro_batches + i));
    items.push_back({batch.tokens, batch.source_tokens + batch.tokens});
  }
  return items;
}

BatchLoss TranslationTask::loss(i64 micro_batch, nn::Pass& pass) {
  return {model_->loss(drawn_[static_cast<size_t>(micro_batch)], pass,
                       {.ignore_index = pad_id, .label_smoothing = recipe_.smoothing})};
}

double TranslationTask::mean_items_read() const {
  const Corpus& corpus = data_.training;
  const i64 ends = 2 * corpus.size();  // each source and each target has an end mark
  return static_cast<double>(corpus.source.tokens() + corpus.target.tokens() + ends) /
         static_cast<double>(training_.in_epoch()) * static_cast<double>(recipe_.micro_batches);
}

std::pair<double, i64> TranslationTask::loss_of_validation(i64 batch_number) const {
  const NoGradient nothing_recorded;
  const TranslationBatch batch = validation_.sorted_batch(batch_number);
  nn::Pass pass = nn::Pass::inference();
  const Variable sum = model_->loss(batch, pass, {.ignore_index = pad_id, .reduction = Reduction::sum});
  return {sum.item(), batch.tokens};
}

double TranslationTask::validation_loss() const {
  double total = 0;
  i64 tokens = 0;
  for (i64 i = 0; i < validation_.in_epoch(); ++i) {
    const auto [loss, count] = loss_of_validation(i);
    total += loss;
    tokens += count;
  }
  return total / static_cast<double>(tokens);
}

// Tries ten batches. The batches are sorted by length, so that every n-th stands for all.
double TranslationTask::seconds_of_evaluation() {
  constexpr i64 tried = 10;
  const i64 all = validation_.in_epoch(), stride = (all + tried - 1) / tried;
  i64 tokens = 0;
  const double seconds = seconds_of([&] {
    for (i64 i = stride / 2; i < all; i += stride) tokens += loss_of_validation(i).second;
  });
  return seconds * static_cast<double>(data_.validation.target.tokens() + data_.validation.size()) /
         static_cast<double>(tokens);
}

}  // namespace orrery::translate
