// Chapter 9. What the trainings of a BERT share, whatever it learns: options, tokens, --init, batches, steps; and what
// they saved, which `export` writes for others.
//
// Devlin et al. 2018, "BERT", section 4: "For each task, we simply plug in the task-specific inputs and outputs into
// BERT and fine-tune all the parameters end-to-end." The defaults are the usual ones of fine-tuning (appendix A.3):
// batches of 32, AdamW, a rate of 5e-5 that rises in the first tenth of the steps and then falls to 0, 3 epochs.
// A derived class says how its files are read, and has its losses and scores.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tasks/text_encoder.h"
#include "apps/training/program.h"
#include "apps/training/task.h"
#include "nn/files/bert_files.h"

namespace orrery {

class BertTraining : public TrainingProgram, public Task {
 public:
  std::string program() const override = 0;
  std::string command() const override { return "orrery " + program() + " train"; }
  TrainingRecipe& recipe() override { return recipe_; }
  void add_options(CLI::App& command) override;
  void settle() override;
  void check_given() const override;
  std::vector<NamedFile> texts() const override;
  void read(const std::string& path, const Metadata& kept) override;
  i64 expected_parameters() const override { return config_.parameter_count(); }
  // Devlin et al.'s recipe, as resolve() has it.
  std::optional<KnownTraining> known_training() override;
  bool may_lack(const std::string& on_disk) const override { return nn::is_of_task(on_disk); }
  Task& build() override;
  Metadata of_model() const override;

  nn::Module& module() override { return *model_; }
  std::string unit() const override { return "texts"; }

 protected:
  /// What FILE is, for the help.
  virtual std::string file_help() const = 0;
  /// Adds the options that say which columns of a file are read.
  virtual void add_columns(CLI::App& command) = 0;
  virtual nn::BertHead head() const = 0;
  /// The texts of a file. Errors, naming file and row: a column is missing, a text is empty.
  virtual std::vector<LabelledText> read_file(const std::string& path) const = 0;
  /// What follows from all texts to learn, such as the labels of `config_`; what they were is that of --init.
  virtual void look_at(const std::vector<LabelledText>& texts) = 0;
  /// Texts of the file at `path` as `tokens_`.
  virtual EncodedTexts encoded(const std::vector<LabelledText>& texts, const std::string& path) const = 0;

  TrainingRecipe recipe_{.steps = TrainingRecipe::automatic,
                         .optimizer = OptimizerKind::adamw,
                         .beta2 = 0.999,
                         .eps = 1e-8,
                         .weight_decay = 0.01,
                         .schedule = Schedule::constant,
                         .rate = TrainingRecipe::automatic,
                         .warmup = TrainingRecipe::automatic,
                         .cooldown = 0.9,
                         .evaluate_every = TrainingRecipe::automatic};
  nn::BertConfig config_{.layer = {.d_model = 128, .num_heads = 4, .d_ff = 512, .dropout = 0.1}, .num_layers = 2};
  std::string file_, valid_;
  i64 most_tokens_ = 128, batch_ = 32;
  std::string tuning_rate_ = "5e-5";  // the rate with --init, if none is given
  bool has_stories_ = false;          // texts are questions about stories (label_task.h)
  std::optional<TextTokens> tokens_;
  EncodedTexts learned_, held_;
  std::optional<translate::BatchesByLength> batches_;
  std::optional<nn::Bert> model_;

 private:
  bool starts_from_another() const { return !run.init.empty(); }
  i64 usual_epochs() const { return starts_from_another() ? 3 : 10; }
  i64 least_steps() const { return starts_from_another() ? 200 : 500; }
  void take_config(const std::string& path, const Metadata& kept);
  void take_tokens(const std::string& path, const Metadata& kept, const std::vector<LabelledText>& texts);
  void resolve();

  std::string vocabulary_file_;
  i64 vocabulary_size_ = 4000, epochs_ = TrainingRecipe::automatic;
  std::vector<CLI::Option*> from_scratch_;  // the options that --init decides
  CLI::Option* max_tokens_ = nullptr;
};

/// What a saved model is, and its tokens.
struct SavedForm {
  Metadata metadata;
  nn::BertConfig config;
  TextTokens tokens;
};
/// Errors: the training is not finished; the model has another head.
SavedForm saved_form(const std::string& task, nn::BertHead head, const std::string& path);

/// Adds the sub-command `export`, which writes a BERT that `task` saved as a folder of Hugging Face's transformers:
/// model.safetensors and config.json and, if its tokens are pieces of words, vocab.txt and tokenizer_config.json. A
/// model with another head is refused. The help says which models it takes only, if there are others.
void add_bert_export(CLI::App& parent, int& exit_code, const std::string& task, nn::BertHead head,
                     const std::string& only = "");

}  // namespace orrery
