// Chapter 9. `orrery translate train`, and what other tasks take from it that learn to write one text for another.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "apps/tasks/translate/task.h"
#include "apps/training/program.h"

namespace orrery::translate {

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
  std::string sample() override;
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
