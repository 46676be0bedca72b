// Chapter 9. Writing and reading the files of a translator.
#include "apps/tasks/translate/saved.h"

#include <algorithm>

#include "apps/training/training_files.h"
#include "core/error.h"
#include "nn/files/files.h"
#include "nn/generate/ensemble.h"

namespace orrery::translate {

Metadata metadata_of(const TranslationModel& model, const Vocabulary& vocabulary) {
  return {{std::string(kind_key), name_of(model.kind())},
          {std::string(nn::config_key), model.config()},
          {std::string(vocabulary_key), vocabulary.to_json()}};
}

void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more) {
  Metadata metadata = metadata_of(model, vocabulary);
  metadata.insert(more.begin(), more.end());
  nn::save(model.module(), path, metadata);
}

Translator load_translator(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished("translate", path, metadata);
  const std::string& saved_vocabulary = model_entry(metadata, vocabulary_key, "translate", path);
  const Vocabulary vocabulary = within("load " + path, [&] { return Vocabulary::from_json(saved_vocabulary); });
  Translator translator{vocabulary, load_model(path, metadata)};
  const TranslationModel& model = *translator.model;
  for (const i64 size : {model.source_vocabulary_size(), model.vocabulary_size()})
    check(size == vocabulary.size(), "translate", path, " holds a model of ", size, " tokens and a vocabulary of ",
          vocabulary.size());
  check(model.padding_id() == pad_id, "translate", path, " holds a model whose padding is token ", model.padding_id(),
        "; that of its vocabulary is ", pad_id);
  return translator;
}

Translator load_ensemble(const std::vector<std::string>& paths) {
  check(!paths.empty(), "translate", "an ensemble needs a model");
  Translator all = load_translator(paths[0]);
  for (size_t i = 1; i < paths.size(); ++i) {
    Translator other = load_translator(paths[i]);
    check(other.vocabulary.to_json() == all.vocabulary.to_json(), "translate", paths[i],
          " has another vocabulary than ", paths[0], ": they cannot write together");
    all.others.push_back(std::move(other.model));
  }
  return all;
}

i64 Translator::most_tokens() const {
  i64 most = model->most_tokens();
  for (const auto& other : others) most = std::min(most, other->most_tokens());
  return most;
}

i64 Translator::parameter_count() const {
  i64 count = model->module().parameter_count();
  for (const auto& other : others) count += other->module().parameter_count();
  return count;
}

std::unique_ptr<nn::StepwiseDecoder> Translator::decoder(const Tensor& source, i64 most_tokens) const {
  if (others.empty()) return model->decoder(source, most_tokens);
  std::vector<std::unique_ptr<nn::StepwiseDecoder>> all;
  all.push_back(model->decoder(source, most_tokens));
  for (const auto& other : others) all.push_back(other->decoder(source, most_tokens));
  return nn::ensemble_of(std::move(all));
}

}  // namespace orrery::translate
