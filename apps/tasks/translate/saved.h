// Chapter 9. Translators in files: a model with its vocabulary, and what a training needs to be resumed.
//
//   FILE          the model's parameters; as metadata its kind, its configuration and the vocabulary
//   FILE.resume   the state of an unfinished training (apps/training/training_files.h); as metadata the vocabulary, the
//                 recipe, the options, and the names and checksums of the text files
// A translator is used from FILE alone: `load_translator` returns all that decoding needs.
#pragma once

#include "apps/tasks/translate/task.h"
#include "apps/training/training_files.h"

namespace orrery::translate {

/// A saved model and its vocabulary, or several that write together (nn/generate/ensemble.h).
struct Translator {
  Vocabulary vocabulary;
  std::unique_ptr<TranslationModel> model;
  std::vector<std::unique_ptr<TranslationModel>> others{};

  /// The longest sentence that all of them read and write, with begin or end.
  i64 most_tokens() const;
  i64 parameter_count() const;  ///< of all models together
  /// Their decoder, as `TranslationModel::decoder`.
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens, i64 beam) const;
};
/// Writes FILE, or leaves it as it was, with `more` metadata. Errors: those of `nn::save`.
void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more = {});
/// Reads FILE. Errors: those of `load_model`; a file without a vocabulary, or with one that does not fit the model.
Translator load_translator(const std::string& path);
/// Reads several files as one translator. Errors also: no file; a file with another vocabulary than the first.
Translator load_ensemble(const std::vector<std::string>& paths);

/// How a training was started.
struct TranslationOrigin {
  TranslationRecipe recipe;
  std::string options{};   ///< those that decide what is trained, as --config takes them
  TranslationFiles files;  ///< absolute paths
};
/// What the files of a training hold besides its state, if it was started as `origin` says.
SavedParts saved_parts(const TranslationOrigin& origin, TranslationTask& task);

/// How an unfinished training was started, with what its file keeps of the text.
struct ResumedOrigin {
  TranslationOrigin origin;
  Vocabulary vocabulary;
  std::vector<u32> checksums;  ///< of the text files
};
/// Errors: the file is not of `orrery translate`, or describes a model far larger than itself, or another model than
/// the one whose parameters it has.
ResumedOrigin origin_of(const UnfinishedTraining& training);

}  // namespace orrery::translate
