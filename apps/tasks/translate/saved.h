// Chapter 9. Translators in files: a model with its vocabulary, and what a training needs to be resumed.
//
//   FILE          the model's parameters; as metadata its kind, its configuration and the vocabulary
// A translator is used from FILE alone: `load_translator` returns all that decoding needs.
#pragma once

#include "apps/tasks/translate/task.h"

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
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const;
};
/// What FILE says about the model.
Metadata metadata_of(const TranslationModel& model, const Vocabulary& vocabulary);
/// Writes FILE, or leaves it as it was, with `more` metadata. Errors: those of `nn::save`.
void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more = {});
/// Reads FILE. Errors: those of `load_model`; a file without a vocabulary, or with one that does not fit the model.
Translator load_translator(const std::string& path);
/// Reads several files as one translator. Errors also: no file; a file with another vocabulary than the first.
Translator load_ensemble(const std::vector<std::string>& paths);

}  // namespace orrery::translate
