// Chapter 9. Training a translator: recipes, the text as tokens, and the task that the trainer trains.
//
//   TranslationRecipe recipe = translation_preset("tiny");
//   const TranslationData data = translation_data({.source = "train.en", .target = "train.de"}, recipe);
//   TranslationTask task(recipe, data);
//   Trainer trainer(task);
// The rest is the loop of apps/training/trainer.h; apps/book/ch9/translator.cpp is a whole program.
//
// The preset `published` is the recipe of a published result on Multi30k, English to German: BLEU 41.02 with 2.55
// million weights ("Good for Misconceived Reasons", Wu et al. 2021). The settings are those of README-baseline.md in
// the authors' repository and the defaults of its fairseq. Two GPUs with 4,096 tokens each are two micro-batches here.
// The preset `tiny` trains the same model with Muon (optim/muon.h), on a third of the tokens.
// The recurrent and the convolutional model are of similar size, so that they can be compared with it: with Multi30k's
// vocabulary they have 2.16 and 2.31 million parameters. Their presets are `published` with a lower rate, stronger
// clipping and `keep_last` off.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/corpus.h"
#include "apps/tasks/translate/model.h"
#include "apps/training/deadline.h"
#include "apps/training/program.h"

namespace orrery::translate {

/// Recurrent and convolutional models of a size like that of `nn::tiny`.
RecurrentTranslatorConfig tiny_recurrent();
ConvolutionalTranslatorConfig tiny_convolutional();

/// Everything that decides how a translator is trained, except the text.
struct TranslationRecipe : TrainingRecipe {
  ModelKind kind = ModelKind::transformer;
  // The three models; `kind` says which is trained. Vocabulary, pad_id and max_len follow from the text.
  nn::TransformerConfig model = nn::tiny(first_piece_id + 1);
  RecurrentTranslatorConfig recurrent = tiny_recurrent();
  ConvolutionalTranslatorConfig convolutional = tiny_convolutional();
  i64 batch_tokens = 4096;  ///< of a micro-batch: source or target, whichever has more, padding included
  i64 most_tokens = 256;    ///< pairs with a longer sentence are left out; the model can write one token more
  double smoothing = 0.1;   ///< label smoothing
  bool segmented = false;   ///< the text is segmented already (vocabulary.h)
  i64 vocabulary = 8000;    ///< tokens that SentencePiece looks for at most
  bool keep_last = false;   ///< keep the parameters of the last evaluation instead of those with the lowest loss

  /// The same recipe with the model that is trained as it is for a vocabulary of this size.
  TranslationRecipe with_vocabulary(i64 size) const;
  /// Gives the other models the dropout, the embeddings and the layers that options set in the configuration of one.
  void share_sizes();
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

/// The model of a recipe, with parameters drawn from `weights`.
std::unique_ptr<TranslationModel> new_model(const TranslationRecipe& recipe, Rng weights);

/// The files of a training. Without files to validate with, a part of the pairs is held out (corpus.h).
struct TranslationFiles {
  std::string source{}, target{}, valid_source{}, valid_target{};
  /// `source` and `valid_source` are tables with these columns, and there are no other files. What has more tokens than
  /// the recipe allows is cut off there.
  std::optional<PairColumns> columns{};
  std::string program = "translate";  ///< that trains with them

  bool hold_out() const { return valid_source.empty(); }
};

/// The text of a training as tokens.
struct TranslationData {
  Vocabulary vocabulary;
  Corpus training, validation;
  std::string first_source;  ///< the first source sentence to validate with, made of its tokens again
  std::string program = "translate";
};
/// Reads the files. The vocabulary is made of the training pairs, unless it is given. Before each part of the work that
/// may take long, `tell` is called with what begins. Errors: a text that does not fit into memory (`limit_memory`);
/// those of the recipe, `read_pairs`, `hold_out`, `Vocabulary` and `corpus_of`.
TranslationData translation_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                                 const Vocabulary* vocabulary = nullptr,
                                 const std::function<void(const std::string& what)>& tell = {});

/// What --minutes goes by: trainings of Multi30k's 29,000 pairs, as README.md has them.
KnownTraining known_translator(TranslationRecipe& recipe, const TranslationData& data);

/// A model and sentence pairs. Its loss is smoothed as the recipe says. The validation loss is not, so that it can be
/// compared with others: the mean of -ln p(token) over all validation tokens, the ends of sentences included.
class TranslationTask final : public Task {
 public:
  /// Trains a new model, or the given one. Recipe and data must outlive the task, which gives the recipe the model's
  /// width, and a number of steps as `evaluate_every` where it was `automatic`.
  TranslationTask(TranslationRecipe& recipe, const TranslationData& data,
                  std::unique_ptr<TranslationModel> model = nullptr);
  TranslationTask(TranslationRecipe&, const TranslationData&&,
                  std::unique_ptr<TranslationModel> = nullptr) = delete;  // the data would not outlive it

  TranslationModel& model() { return *model_; }
  const TranslationModel& model() const { return *model_; }
  const TranslationData& data() const { return data_; }
  const TranslationBatches& batches() const { return training_; }
  /// A greedy translation of one line. Errors: those of `Vocabulary::ids`; a line that is too long.
  std::string translate(const std::string& line) const;

  std::string program() const override { return data_.program; }
  nn::Module& module() override { return model_->module(); }
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
  // Of so many batches of the validation, with this first one and stride: the sum of the losses, and the target tokens.
  Ranks::Numbers judge(i64 batches, i64 first, i64 stride) const;

  TranslationRecipe& recipe_;
  const TranslationData& data_;
  TranslationBatches training_, validation_;
  std::unique_ptr<TranslationModel> model_;
  std::vector<TranslationBatch> drawn_;  // of the current step
};

/// An option that not all models have.
struct ModelOption {
  CLI::Option* option;
  std::vector<ModelKind> kinds;  // that have it

  bool is_of(ModelKind kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }
};

/// The training of a translator, and all that its options say. A task with other files says in `files`, which `program`
/// it is and which columns it reads, and overrides what is of these files.
class TranslateProgram : public TrainingProgram {
 public:
  explicit TranslateProgram(TranslationFiles files = {}) : files_(std::move(files)) {}

  std::string program() const override { return files_.program; }
  std::string command() const override { return "orrery " + program() + " train"; }
  TranslationRecipe& recipe() override { return recipe_; }

  void add_options(CLI::App& command) override;
  void settle() override;
  void check_given() const override;
  std::vector<NamedFile> texts() const override;
  void read(const std::string& path, const Metadata& kept) override;
  i64 expected_parameters() const override {
    return recipe_.with_vocabulary(data_->vocabulary.size()).parameter_count();
  }
  std::optional<KnownTraining> known_training() override { return known_translator(recipe_, *data_); }
  Task& build() override { return task_.emplace(recipe_, *data_); }
  void announce() override;

  Metadata of_model() const override;
  std::string sample(bool is_best) override;
  Score report(Trainer& trainer) override;

 protected:
  /// Adds `text_options` and the options that say how they are read.
  virtual void add_text_options(CLI::App& command);
  void add_vocabulary_options(CLI::App& command, const std::string& of_too_long);

  TranslationRecipe recipe_ = translation_preset("tiny");
  TranslationFiles files_;

 private:
  void add_model_options(CLI::App& command);
  std::string sample_of(int descriptor, size_t indent = 0) const;

  std::string preset_ = "tiny", model_ = name_of(ModelKind::transformer);
  std::vector<ModelOption> of_models_;
  std::optional<TranslationData> data_;
  std::optional<TranslationTask> task_;
};

}  // namespace orrery::translate
