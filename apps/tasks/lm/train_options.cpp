// Chapter 9. The options of `orrery lm train`.
#include "apps/tasks/lm/train_options.h"

#include <nlohmann/json.hpp>

#include "apps/training/recipe_options.h"

namespace orrery {
namespace {

// Returns the option that names a file of text.
CLI::Option* add_text_options(CLI::App& command, LmTrainOptions& options) {
  begin_group(command, "Text");
  CLI::Option* validation =
      add_file(command, "--valid", options.files.validation,
               "Text to validate with; if not given, the last tenth of the text is held out, a million tokens at most");
  add_choice(command, "--tokens", options.tokens,
             "What a token is: a character, a byte (for files that are not UTF-8), or a piece of a word");
  add_whole_number(command, "--vocab-size", options.vocabulary_size, 264, largest_vocabulary,
                   "The most tokens that sentencepiece may find, the 256 bytes among them");
  return validation;
}

void add_model_options(CLI::App& command, LmTrainOptions& options) {
  nn::GptConfig& model = options.recipe.model;
  begin_group(command, "Model");
  // Added before the others, which change the preset: options take effect in the order in which they are added.
  add_choice(command, "--preset", options.preset, nn::gpt_preset_names(),
             "A model by its name, with the text's own vocabulary; other options change it",
             [&model](const std::string& name) { model = nn::gpt_preset(name); });
  add_whole_number(command, "--block", model.max_len, 1, 65536, "Tokens that the model sees at once");
  add_whole_number(command, "--layers", model.num_layers, 1, 96, "Layers");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_switch(command, "bias", model.layer.bias, "Biases in linear maps and norms");
  add_flag(command, "--rotary", model.rotary,
           "Turn queries and keys by angles of their positions, besides the position embedding");
  add_flag(command, "--query-key-norm", model.query_key_norm,
           "Scores are cosines of queries and keys, times a learned number");
  add_flag(command, "--untied", options.untied, "A matrix of its own for the head, instead of the embedding's");
}

void add_training_options(CLI::App& command, LmRecipe& recipe) {
  begin_group(command, training_group);
  add_whole_number(command, "--batch", recipe.batch, 1, 65536, "Blocks in a batch");
  add_flag(command, "--replacement", recipe.replacement,
           "Draw each block from anywhere in the text, instead of each block once per epoch");
  add_recipe_options(command, recipe, {.warmup = "a twentieth of all, 100 at most"});
  begin_group(command, evaluation_group);
  add_whole_number(command, "--estimate-batches", recipe.estimate_batches, 1, 1000000,
                   "Batches of an evaluation, which estimates the loss on the text for validation");
}

// --minutes, which excludes the options that it chooses.
void add_minutes(CLI::App& command, LmTrainOptions& options, const std::vector<CLI::Option*>& excluded) {
  begin_group(command, training_group);
  CLI::Option* minutes =
      add_number(command, "--minutes", options.minutes, 0.1, 1e6,
                 "Choose model, batch, rates and steps so that all is done in this many minutes on this machine, and "
                 "print the command that trains the same again");
  show_default(minutes, "");
  exclude(minutes, excluded);
}

}  // namespace

void add_train_options(CLI::App& command, const std::shared_ptr<LmTrainOptions>& options) {
  CLI::Option* text = add_files(command, "FILE", options->files.training,
                                "Text to learn, UTF-8; several files are one text; without any, tinyshakespeare");
  CLI::Option* validation = add_text_options(command, *options);
  const auto texts = static_cast<std::ptrdiff_t>(options_of(command).size());
  add_model_options(command, *options);
  add_training_options(command, options->recipe);
  std::vector<CLI::Option*> excluded = options_of(command);
  excluded.erase(excluded.begin(), excluded.begin() + texts);
  std::erase_if(excluded, [](const CLI::Option* option) { return typed_name(option) == "--seed"; });
  const RunOptionHandles run = add_run_options(command, options->run, {text, validation});
  excluded.insert(excluded.end(), {run.resume, run.print_config});
  add_minutes(command, *options, excluded);
}

void check_options(const LmRecipe& recipe) {
  const nn::GptConfig& model = recipe.model;
  if (model.layer.d_model % model.layer.num_heads != 0)
    usage_error("--heads", std::to_string(model.layer.num_heads) + " does not divide --d-model, " +
                               std::to_string(model.layer.d_model));
  const i64 width = model.layer.d_model / model.layer.num_heads;
  if (model.rotary && width % 2 != 0)
    usage_error("--rotary", "needs heads of an even width: --d-model / --heads is " + std::to_string(width));
  check_recipe_options(recipe);
}

std::string command_of(const LmTrainOptions& options, const std::string& chosen) {
  std::string command = "orrery lm train";
  std::vector<CLI::Option*> given = options.run.deciding;
  std::erase_if(given, [](const CLI::Option* option) { return !is_given(option); });
  const Json typed = values_of(given), values = parse_json_object(chosen, "lm"),
             before = parse_json_object(options.before_choice, "lm");
  for (const auto& [name, value] : values.items()) {
    if (before.at(name) == value && !typed.contains(name)) continue;
    if (value.is_array())
      for (const Json& file : value) command += ' ' + shell_quoted(file.get<std::string>());
    else if (name == "FILE")
      command += ' ' + shell_quoted(value.get<std::string>());
    else if (value.is_boolean())
      command += (value.get<bool>() ? " --" : " --no-") + name;
    else
      command += " --" + name + ' ' + (value.is_string() ? shell_quoted(value.get<std::string>()) : value.dump());
  }
  return command;
}

}  // namespace orrery
