// Chapter 9. `orrery translate`: trains a translator, from its options to its last line; and its other sub-commands.
#include "apps/tasks/translate/task.h"

#include <unistd.h>

#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/terminal.h"
#include "nn/files/files.h"

namespace orrery {
namespace translate {
namespace {

void print_data(const TranslationFiles& files, const TranslationData& data, i64 most) {
  const auto print = [&](const std::string& what, const Corpus& corpus) {
    std::cerr << what << ": " << corpus.counts.text(most) << ", with " << corpus.source.tokens() << " source and "
              << corpus.target.tokens() << " target tokens\n";
  };
  print("training", data.training);
  print(files.hold_out() ? "validation, held out of these files" : "validation", data.validation);
  std::cerr << "vocabulary of " << data.vocabulary.size()
            << (data.vocabulary.is_segmented() ? " tokens, as segmented\n" : " tokens, by SentencePiece\n");
}

}  // namespace

std::vector<NamedFile> TranslateProgram::texts() const {
  std::vector<NamedFile> given{{"--source", files_.source}, {"--target", files_.target}};
  if (!files_.hold_out()) {
    given.push_back({"--valid-source", files_.valid_source});
    given.push_back({"--valid-target", files_.valid_target});
  }
  return given;
}

void TranslateProgram::announce() { print_data(files_, *data_, recipe_.most_tokens); }

Metadata TranslateProgram::of_model() const {
  Metadata metadata = metadata_of(task_->model(), data_->vocabulary);
  metadata[std::string(task_key)] = program();
  return metadata;
}

std::string TranslateProgram::sample(bool) { return "  " + sample_of(STDERR_FILENO, 2); }

void TranslateProgram::add_vocabulary_options(CLI::App& command, const std::string& of_too_long) {
  add_whole_number(
      command, "--vocab-size", recipe_.vocabulary, first_piece_id + 1, largest_vocabulary,
      "The most tokens that SentencePiece may find in text that is not segmented; it always uses 4 threads, "
      "since what it finds depends on their number");
  add_whole_number(command, "--max-tokens", recipe_.most_tokens, 1, 65536, of_too_long);
}

void TranslateProgram::add_text_options(CLI::App& command) {
  begin_group(command, "Text");
  add_flag(command, "--segmented", recipe_.segmented,
           "The text is segmented: tokens stand between spaces, and @@ at the end of one joins it to the next");
  add_vocabulary_options(command, "Tokens of the longest sentence; pairs with a longer one are left out");
  text_options = {
      add_file(command, "--source", files_.source, "Sentences to translate from, one a line"),
      add_file(command, "--target", files_.target, "Their translations, one a line, in the same order"),
      add_file(command, "--valid-source", files_.valid_source,
               "Sentences to validate with; if not given, a twentieth of the pairs, 2,000 at most, is held out"),
      add_file(command, "--valid-target", files_.valid_target, "Their translations")};
}

void TranslateProgram::add_model_options(CLI::App& command) {
  using enum ModelKind;
  const auto add_for = [&](const std::vector<ModelKind>& kinds, auto& config,
                           std::initializer_list<FieldOption> fields) {
    for (CLI::Option* option : added_by(command, [&] { add_fields(command, config, fields); }))
      of_models_.push_back({option, kinds});
  };
  begin_group(command, "Model");
  add_fields(command, recipe_.model, {"dropout"});
  add_for({transformer, convolutional}, recipe_.model, {"num_encoder_layers", "num_decoder_layers"});
  begin_group(command, "Transformer");
  add_for(
      {transformer}, recipe_.model,
      {"d_model", "num_heads", "d_ff", "attention_dropout", "activation_dropout", "norm_first", "final_norm", "copy"});
  begin_group(command, "Recurrent and convolutional models");
  add_for({recurrent, convolutional}, recipe_.recurrent, {"d_embedding"});
  add_for({recurrent}, recipe_.recurrent, {"d_encoder", "d_decoder", "d_attention", "d_output"});
  add_for({convolutional}, recipe_.convolutional, {"d_hidden", "width"});
}

void TranslateProgram::add_options(CLI::App& command) {
  const auto all_models = names(ModelKind{});
  // Whether words are copied is the program's choice, not that of a preset.
  const auto choose = [this, copy = recipe_.model.copy](const TranslationRecipe& recipe) {
    recipe_ = recipe;
    recipe_.model.copy = copy;
  };
  // These two come before the others, which change what they choose.
  add_choice(command, "--preset", preset_, translation_preset_names(),
             "A Transformer and its training by name: tiny for tens of thousands of pairs; published, the same model "
             "with Adam, as Wu et al. 2021 trained it; small for hundreds of thousands of pairs; base, the model of "
             "Attention Is All You Need, for millions; other options change it",
             [choose](const std::string& name) { choose(translation_preset(name)); });
  add_choice(command, "--model", model_, {all_models.begin(), all_models.end()},
             "Which model: the Transformer, or one of those that it replaced, of the size of the preset tiny",
             [choose](const std::string& name) {
               for (const ModelKind kind : {ModelKind::recurrent, ModelKind::convolutional})
                 if (name == name_of(kind)) choose(translation_preset(kind));  // the Transformer is that of --preset
             });
  add_text_options(command);
  add_model_options(command);
  begin_group(command, training_group);
  also_fitted = {add_whole_number(command, "--batch-tokens", recipe_.batch_tokens, 1, 10000000,
                                  "Tokens of a micro-batch, source or target, whichever has more, padding included; a "
                                  "step has --micro-batches of them")};
  add_number(command, "--smoothing", recipe_.smoothing, 0, 0.999999, "Label smoothing");
  add_recipe_options(command, recipe_, {.evaluate_every = "an epoch"});
  begin_group(command, evaluation_group);
  add_switch(command, "keep-last", recipe_.keep_last,
             "End with the parameters of the last evaluation, not with those of the lowest loss");
}

void TranslateProgram::settle() {
  if (!files_.columns && files_.valid_source.empty() != files_.valid_target.empty())
    usage_error("--valid-source, --valid-target", "must be given together");
  recipe_.share_sizes();
  if (preset_ != "tiny" && recipe_.kind != ModelKind::transformer)
    usage_error("--preset " + preset_, "is a Transformer, not a " + name_of(recipe_.kind) + " model");
  for (const ModelOption& each : of_models_) {  // options of another model would have no effect
    if (each.is_of(recipe_.kind)) continue;
    if (is_given(each.option)) usage_error(typed_name(each.option), "is no option of --model " + name_of(recipe_.kind));
    std::erase(run.deciding, each.option);
  }
  if (recipe_.convolutional.width % 2 == 0) usage_error("--width", "must be odd");
  check_heads(recipe_.model.layer);
  if (recipe_.batch_tokens <= recipe_.most_tokens)
    usage_error("--batch-tokens", std::to_string(recipe_.batch_tokens) + " is not above --max-tokens, " +
                                      std::to_string(recipe_.most_tokens));
  check_recipe_options(recipe_);
  for (std::string* path : {&files_.source, &files_.target, &files_.valid_source, &files_.valid_target})
    *path = absolute_path(*path);
}

void TranslateProgram::check_given() const {
  if (files_.source.empty()) usage_error("--source", "is required: the file of sentences to translate from");
  if (files_.target.empty()) usage_error("--target", "is required: the file of their translations");
}

// The vocabulary of a model or a training that is there already is kept.
void TranslateProgram::read(const std::string& path, const Metadata& kept) {
  const auto found = kept.find(std::string(vocabulary_key));
  std::optional<Vocabulary> vocabulary;
  if (found != kept.end()) vocabulary = within("load " + path, [&] { return Vocabulary::from_json(found->second); });
  check(vocabulary || run.resume.empty(), program(), path, " is not an unfinished training (it has no vocabulary)");
  // What began before models could copy words says nothing of it, and goes on without.
  const auto config = kept.find(std::string(nn::config_key));
  if (config != kept.end() && config->second.find("\"copy\"") == std::string::npos) recipe_.model.copy = false;
  std::optional<Phase> phase;  // what takes long is said
  data_ = translation_data(files_, recipe_, vocabulary ? &*vocabulary : nullptr,
                           [&](const std::string& what) { phase.emplace(what); });
}

// The first validation sentence in the model's words, in one line of a terminal. An early model may write very much. If
// the sentence cannot be translated, the training continues, and nothing else is lost.
std::string TranslateProgram::sample_of(int descriptor, size_t indent) const {
  constexpr size_t in_a_file = 200, least = 20;
  const Terminal terminal = terminal_of(descriptor);
  const size_t width = terminal.live ? static_cast<size_t>(terminal.width) : in_a_file;
  std::string translation;
  try {
    translation = greedy_translations(task_->model(), data_->vocabulary, {data_->validation.source[0]})[0];
  } catch (const Error& error) { translation = std::string("(") + error.what() + ")"; }
  const std::string arrow = "  ->  ";
  const size_t room = std::max(width, least + indent) - indent;
  std::string source = harmless(data_->first_source);  // a long one is cut off, so that the translation can be seen
  if (translation.size() < room / 2) source = shortened(source, room - translation.size() - arrow.size());
  return shortened(source + arrow + harmless(translation), room);
}

// Prints a sample of the model and its loss, after a training that has ended or was stopped.
Score TranslateProgram::report(Trainer& trainer) {
  const std::string hash = trainer.hash();
  const bool last = recipe_.keep_last || trainer.best_step() == 0;
  if (last)
    trainer.end_with_judged();
  else
    trainer.end_with_best();
  const double loss = [&] {
    const Phase phase("computing the validation loss");
    return task_->validation_loss();
  }();
  std::cout << sample_of(STDOUT_FILENO) << '\n';
  if (run.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss << " per token, perplexity "
            << std::setprecision(2) << std::exp(loss);
  if (trainer.best_step() > 0)
    std::cout << std::setprecision(4) << " (lowest " << trainer.best_score() << " at step " << trainer.best_step()
              << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s" << std::endl;
  return {"validation loss", loss};
}

}  // namespace translate

void add_translate_decode(CLI::App& translate, int& exit_code);  // decode_command.cpp
void add_translate_score(CLI::App& translate, int& exit_code);   // score_command.cpp

void add_translate(CLI::App& program, int& exit_code) {
  CLI::App& translate =
      add_command(program, "translate", "Translation: train a translator, translate, score a translated text",
                  "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
                  "  orrery translate decode --load en-de.safetensors test.en > translated.de\n"
                  "  orrery translate score translated.de reference.de\n"
                  "Each has its own --help.");
  add_training(translate, exit_code, std::make_shared<orrery::translate::TranslateProgram>(), "train",
               "Learn to translate from two files; the defaults are for tens of thousands of pairs",
               "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
               "  orrery translate train --resume en-de.safetensors");
  add_translate_decode(translate, exit_code);
  add_translate_score(translate, exit_code);
  needs_sub_command(translate);
}

}  // namespace orrery
