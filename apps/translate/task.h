// Chapter 9. Training a translator: its recipe, its data, and the task that the trainer trains.
//
//   const TranslationRecipe recipe = translation_preset("tiny");
//   const TranslationData data = translation_data({.source = "train.en", .target = "train.de"}, recipe);
//   TranslationTask task(recipe, data);
//   Trainer trainer(task, task.recipe(), task.model().d_model());
// The rest is the loop of apps/training/trainer.h; apps/book/ch9/translator.cpp is a whole program.
//
// The preset `published` is the recipe of a published result on Multi30k, English to German: BLEU 41.02 with 2.55
// million weights ("Good for Misconceived Reasons", Wu et al. 2021). The settings are those of README-baseline.md in
// the authors' repository and the defaults of its fairseq. Two GPUs with 4,096 tokens each are two micro-batches here.
// The preset `tiny` trains the same model with Muon (optim/muon.h), on a third of the tokens.
// The recurrent and the convolutional model are of similar size, so that they can be compared with it: with Multi30k's
// vocabulary they have 2.16 and 2.31 million parameters. Their presets are `published` with a lower rate, stronger
// clipping and `keep_last` off.
// Serves: nn/models/transformer.h
#pragma once

#include <functional>
#include <memory>

#include "apps/training/trainer.h"
#include "apps/translate/model.h"

namespace orrery::translate {

/// Recurrent and convolutional models of a size like that of `nn::tiny`.
nn::RecurrentTranslatorConfig tiny_recurrent();
nn::ConvolutionalTranslatorConfig tiny_convolutional();

/// Everything that decides how a translator is trained, except the text.
struct TranslationRecipe : TrainingRecipe {
  ModelKind kind = ModelKind::transformer;
  // The three models; `kind` says which is trained. Vocabulary, pad_id and max_len follow from the text.
  nn::TransformerConfig model = nn::tiny(first_piece_id + 1);
  nn::RecurrentTranslatorConfig recurrent = tiny_recurrent();
  nn::ConvolutionalTranslatorConfig convolutional = tiny_convolutional();
  i64 batch_tokens = 4096;  ///< of a micro-batch: source or target, whichever has more, padding included
  i64 most_tokens = 256;    ///< pairs with a longer sentence are left out; the model can write one token more
  double smoothing = 0.1;   ///< label smoothing
  bool segmented = false;   ///< the text is segmented already (vocabulary.h)
  i64 vocabulary = 8000;    ///< tokens that SentencePiece looks for at most
  bool keep_last = false;   ///< keep the parameters of the last evaluation instead of those with the lowest loss

  /// The same recipe with the model that is trained as it is for a vocabulary of this size.
  TranslationRecipe with_vocabulary(i64 size) const;
  /// The number of its parameters.
  i64 parameter_count() const;
  /// Errors: numbers with which no training is possible.
  void validate() const;
};

/// The presets: "tiny", "published", "small" and "base". Their `evaluate_every` is `automatic`, which stands for an
/// epoch.
const std::vector<std::string>& translation_preset_names();
TranslationRecipe translation_preset(const std::string& name);
/// The same for a kind of model: "tiny" for the Transformer, and one for each of the others.
TranslationRecipe translation_preset(ModelKind kind);

/// The model of a recipe with all parameters 0, except those that its kind sets itself.
std::unique_ptr<TranslationModel> empty_model(const TranslationRecipe& recipe);

/// The fields of TranslationRecipe alone as JSON, the model included, and back into `recipe`.
std::string to_json(const TranslationRecipe& recipe);
void read_json(const std::string& json, TranslationRecipe& recipe);

/// The files of a training. Without files to validate with, a part of the pairs is held out (corpus.h).
struct TranslationFiles {
  std::string source, target, valid_source{}, valid_target{};

  bool hold_out() const { return valid_source.empty(); }
};

/// The text of a training as tokens.
struct TranslationData {
  Vocabulary vocabulary;
  Corpus training, validation;
  std::string first_source;    ///< the first source sentence to validate with, made of its tokens again
  std::vector<u32> checksums;  ///< CRC32C of each file
};
/// Reads the files. The vocabulary is made of the training pairs, unless it is given. Before each part of the work that
/// may take long, `tell` is called with what begins. Errors: those of the recipe, `read_pairs`, `hold_out`,
/// `Vocabulary` and `corpus_of`.
TranslationData translation_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                                 const Vocabulary* vocabulary = nullptr,
                                 const std::function<void(const std::string& what)>& tell = {});

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
  Parameters parameters() override { return model_->module().parameters(); }
  std::vector<i64> draw(i64 step, i64 micro_batches) override;
  /// Source and target, without padding.
  i64 tokens_read() const override { return tokens_read_; }
  Variable loss(i64 micro_batch, nn::Pass& pass) override;
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
