// Chapter 9. What `orrery lm` adds to the files of a training.
#include "apps/tasks/lm/checkpoint.h"

#include <nlohmann/json.hpp>

#include "apps/data/text_file.h"
#include "apps/program/option_file.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

const std::string lm_recipe_key = "lm", origin_key = "origin";  // in the metadata of FILE.resume

}  // namespace

SavedParts saved_parts(const LmOrigin& origin, LmTask& task) {
  const Json text_entry = {{"texts", origin.texts.training},
                           {"validation", origin.texts.validation},
                           {"text_checksum", origin.text_checksum},
                           {"validation_checksum", origin.validation_checksum}};
  Metadata of_model = origin.tokenizer.metadata();
  of_model[options_key] = origin.options;
  Metadata of_training = of_model;
  of_training[std::string(nn::config_key)] = nn::to_json(task.model.config);
  of_training[lm_recipe_key] = to_json(origin.recipe);
  of_training[origin_key] = json_text(text_entry);
  return {.save_model = [&task, of_model](const std::string& path) { nn::save_gpt(task.model, path, of_model); },
          .origin = of_training,
          .model_bytes = nn::saved_bytes(task.model)};
}

LmOrigin origin_of(const UnfinishedTraining& training) {
  const auto entry = [&](const std::string& key) -> const std::string& { return entry_of(training, "lm", key); };
  const std::string &recipe = entry(lm_recipe_key), &model = entry(std::string(nn::config_key)),
                    &texts = entry(origin_key), reading = "load " + training.path;
  LmOrigin origin{.tokenizer = within(reading, [&] { return Tokenizer::of_metadata(training.metadata); })};
  origin.options = entry(options_key);
  within(reading, [&] {
    static_cast<TrainingRecipe&>(origin.recipe) = training.recipe;
    read_json(recipe, origin.recipe);
    origin.recipe.model = nn::gpt_config(model);
    const Json text_entry = parse_json_object(texts, "lm origin");
    nn::config_json::Reader read("lm origin", text_entry, nn::config_json::Fields::all);
    read("texts", origin.texts.training);
    read("validation", origin.texts.validation);
    read("text_checksum", origin.text_checksum, 0, std::numeric_limits<u32>::max());
    read("validation_checksum", origin.validation_checksum, 0, std::numeric_limits<u32>::max());
    read.check_all_known();
  });
  nn::check_size(origin.recipe.model.parameter_count(), training.path);
  return origin;
}

LmModel load_lm(const LmSource& source) {
  const auto& [path, heads, characters] = source;
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished("lm", path, metadata);
  const bool has_tokens = Tokenizer::is_in(metadata);
  check(has_tokens || !characters.empty(), "lm", path,
        " was not saved by orrery lm (it does not say what its tokens are). If they are characters, as in nanoGPT's "
        "shakespeare_char, --characters TEXT names the text; GPT-2's own are not known here");
  check(!has_tokens || characters.empty(), "lm", path, " says what its tokens are: leave --characters out");
  const Tokenizer tokenizer = has_tokens ? within("load " + path, [&] { return Tokenizer::of_metadata(metadata); })
                                         : Tokenizer(Alphabet(read_text(characters)));
  LmModel saved{tokenizer, nn::load_gpt(path, heads)};
  check(saved.model.config.vocab_size == saved.tokenizer.size(), "lm", path, " holds a model of ",
        saved.model.config.vocab_size, " tokens and a list of ", saved.tokenizer.size());
  return saved;
}

}  // namespace orrery
