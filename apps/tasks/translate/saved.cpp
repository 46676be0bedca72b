// Chapter 9. Writing and reading the files of a translator.
#include "apps/tasks/translate/saved.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/program/option_file.h"
#include "apps/training/training_files.h"
#include "core/error.h"
#include "nn/files/files.h"
#include "nn/generate/ensemble.h"
#include "nn/models/config_json.h"

namespace orrery::translate {
namespace {

const std::string recipe_key = "translation", origin_key = "origin";  // in the metadata of FILE.resume

}  // namespace

void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more) {
  Metadata metadata{{std::string(kind_key), name_of(model.kind())},
                    {std::string(nn::config_key), model.config()},
                    {std::string(vocabulary_key), vocabulary.to_json()}};
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

std::unique_ptr<nn::StepwiseDecoder> Translator::decoder(const Tensor& source, i64 most_tokens, i64 beam) const {
  if (others.empty()) return model->decoder(source, most_tokens, beam);
  std::vector<std::unique_ptr<nn::StepwiseDecoder>> all;
  all.push_back(model->decoder(source, most_tokens, beam));
  for (const auto& other : others) all.push_back(other->decoder(source, most_tokens, beam));
  return nn::ensemble_of(std::move(all));
}

SavedParts saved_parts(const TranslationOrigin& origin, TranslationTask& task) {
  const TranslationFiles& files = origin.files;
  const Json begun{{"source", files.source},
                   {"target", files.target},
                   {"valid_source", files.valid_source},
                   {"valid_target", files.valid_target},
                   {"checksums", task.data().checksums}};
  return {.save_model =
              [&task, options = origin.options](const std::string& path) {
                save_translator(task.model(), task.data().vocabulary, path, {{options_key, options}});
              },
          .origin = {{recipe_key, to_json(origin.recipe)},
                     {options_key, origin.options},
                     {origin_key, json_text(begun)},
                     {std::string(vocabulary_key), task.data().vocabulary.to_json()}},
          .model_bytes = nn::saved_bytes(task.model().module())};
}

ResumedOrigin origin_of(const UnfinishedTraining& training) {
  const auto entry = [&](const std::string& key) -> const std::string& { return entry_of(training, "translate", key); };
  const std::string &kept_recipe = entry(recipe_key), &kept_origin = entry(origin_key),
                    &kept_vocabulary = entry(std::string(vocabulary_key));
  TranslationOrigin origin;
  origin.options = entry(options_key);
  std::vector<u32> checksums;
  const Vocabulary vocabulary = within("load " + training.path, [&] {
    static_cast<TrainingRecipe&>(origin.recipe) = training.recipe;
    read_json(kept_recipe, origin.recipe);
    const Json begun = parse_json_object(kept_origin, "translation origin");
    nn::config_json::Reader read("translation origin", begun, nn::config_json::Fields::all);
    read("source", origin.files.source);
    read("target", origin.files.target);
    read("valid_source", origin.files.valid_source);
    read("valid_target", origin.files.valid_target);
    read("checksums", checksums, 0, std::numeric_limits<u32>::max());
    read.check_all_known();
    return Vocabulary::from_json(kept_vocabulary);
  });
  const TranslationRecipe recipe = origin.recipe.with_vocabulary(vocabulary.size());
  if (recipe.kind == ModelKind::transformer)
    nn::check_size(recipe.model, training.path);
  else
    nn::check_size(recipe.parameter_count(), training.path);
  check_parameters(training.state, empty_model(recipe)->module().parameters(), "translate");
  return {origin, vocabulary, checksums};
}

}  // namespace orrery::translate
