// Chapter 9. `orrery translate train`: a training from its options to its last line.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/terminal.h"
#include "apps/tasks/translate/saved.h"
#include "apps/training/program.h"
#include "core/utf8.h"
#include "nn/files/files.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace translate {
namespace {

const std::string origin_key = "origin";  // in the metadata of FILE.resume

// The files of text that are given.
std::vector<NamedFile> named(const TranslationFiles& files) {
  std::vector<NamedFile> given{{"--source", files.source}, {"--target", files.target}};
  if (!files.hold_out()) {
    given.push_back({"--valid-source", files.valid_source});
    given.push_back({"--valid-target", files.valid_target});
  }
  return given;
}

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

// At most this many characters of a line, the last three of them points if it goes on.
std::string shortened(const std::string& line, size_t most) {
  const size_t text = line.find_last_not_of(' ') + 1;
  size_t at = 0, cut = 0, characters = 0;
  for (; at < text && characters < most; ++characters) {
    if (characters + 3 <= most) cut = at;
    at += std::max<size_t>(1, first_character(std::string_view(line).substr(at)).bytes);
  }
  return at >= text ? line.substr(0, text) : line.substr(0, cut) + "...";
}

std::vector<std::string> model_names() {
  const auto all = names(ModelKind{});
  return {all.begin(), all.end()};
}

// What --model changes. The Transformer is that of the preset.
void choose_model(TranslationRecipe& recipe, const std::string& name) {
  for (const ModelKind kind : {ModelKind::recurrent, ModelKind::convolutional})
    if (name == name_of(kind)) recipe = translation_preset(kind);
}

// Some options belong to several models. They are kept in the configuration of one, and the others take them over.
void share_options(TranslationRecipe& recipe) {
  recipe.recurrent.dropout = recipe.convolutional.dropout = recipe.model.layer.dropout;
  recipe.convolutional.d_embedding = recipe.recurrent.d_embedding;
  recipe.convolutional.num_encoder_layers = recipe.model.num_encoder_layers;
  recipe.convolutional.num_decoder_layers = recipe.model.num_decoder_layers;
}

void add_transformer_options(CLI::App& command, nn::TransformerConfig& model) {
  begin_group(command, "Transformer");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--attention-dropout", *model.layer.attention_dropout, 0, 0.99, "Dropout of attention weights");
  add_number(command, "--activation-dropout", *model.layer.activation_dropout, 0, 0.99,
             "Dropout inside feed-forward networks");
  add_switch(command, "norm-first", model.layer.norm_first, "Normalise before each sub-layer instead of after it");
  add_switch(command, "final-norm", model.final_norm, "One more normalisation after each stack");
}

void add_recurrent_options(CLI::App& command, RecurrentTranslatorConfig& model) {
  add_whole_number(command, "--d-encoder", model.d_encoder, 1, 12288,
                   "Recurrent: units of each direction of the encoder");
  add_whole_number(command, "--d-decoder", model.d_decoder, 1, 12288, "Recurrent: units of the decoder");
  add_whole_number(command, "--d-attention", model.d_attention, 1, 12288, "Recurrent: width of the keys");
  add_whole_number(command, "--d-output", model.d_output, 0, 12288,
                   "Recurrent: width of the layer before the logits; 0: no such layer, the logits come straight "
                   "from state, context and word");
}

void add_convolutional_options(CLI::App& command, ConvolutionalTranslatorConfig& model) {
  add_whole_number(command, "--d-hidden", model.d_hidden, 1, 12288, "Convolutional: width of the layers");
  add_whole_number(command, "--width", model.width, 1, 99,
                   "Convolutional: positions that each output sees, an odd number");
}

// The text of a training that is resumed, as its file says it.
struct KeptText {
  bool held_out = true;
  std::vector<u32> checksums;
  std::optional<Vocabulary> vocabulary;
};
KeptText kept_text(const UnfinishedTraining& training) {
  const std::string &origin = entry_of(training, "translate", origin_key),
                    &vocabulary = entry_of(training, "translate", std::string(vocabulary_key));
  KeptText kept;
  within("load " + training.path, [&] {
    const Json begun = parse_json_object(origin, "translation origin");
    nn::config_json::Reader read("translation origin", begun, nn::config_json::Fields::all);
    std::string source, target, valid_source, valid_target;
    read("source", source);
    read("target", target);
    read("valid_source", valid_source);
    read("valid_target", valid_target);
    read("checksums", kept.checksums, 0, std::numeric_limits<u32>::max());
    read.check_all_known();
    kept.held_out = valid_source.empty();
    kept.vocabulary = Vocabulary::from_json(vocabulary);
  });
  return kept;
}

// The vocabulary of a saved model; nothing if it has none.
std::optional<Vocabulary> vocabulary_in(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  const auto found = metadata.find(std::string(vocabulary_key));
  if (found == metadata.end()) return std::nullopt;
  return within("load " + path, [&] { return Vocabulary::from_json(found->second); });
}

// An option that not all models have.
struct ModelOption {
  CLI::Option* option;
  std::vector<ModelKind> kinds;  // that have it

  bool is_of(ModelKind kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }
};

// `orrery translate train`, and all that its options say.
class TranslateProgram final : public TrainingProgram {
 public:
  std::string program() const override { return "translate"; }
  std::string command() const override { return "orrery translate train"; }
  TranslationRecipe& recipe() override { return recipe_; }

  void add_options(CLI::App& command) override;
  void settle() override;
  void check_given() const override;
  std::vector<NamedFile> texts() const override { return named(files_); }
  void read(const UnfinishedTraining* unfinished) override;
  Task& build() override;
  void announce() override { print_data(files_, *data_, recipe_.most_tokens); }

  Metadata of_model() const override { return metadata_of(task_->model(), data_->vocabulary); }
  Metadata of_training() const override;
  std::string sample() override { return "  " + sample_of(STDERR_FILENO, 2); }
  Score report(Trainer& trainer) override;

 private:
  void add_text_options(CLI::App& command);
  void add_for(CLI::App& command, const std::vector<ModelKind>& kinds, const std::function<void()>& add);
  void add_model_options(CLI::App& command);
  void check_model_options() const;
  std::string sample_of(int descriptor, size_t indent = 0) const;

  TranslationRecipe recipe_ = translation_preset("tiny");
  TranslationFiles files_;
  std::string preset_ = "tiny", model_ = name_of(ModelKind::transformer);
  std::vector<ModelOption> of_models_;
  std::optional<TranslationData> data_;
  std::optional<TranslationTask> task_;
};

void TranslateProgram::add_text_options(CLI::App& command) {
  begin_group(command, "Text");
  add_flag(command, "--segmented", recipe_.segmented,
           "The text is segmented: tokens stand between spaces, and @@ at the end of one joins it to the next");
  add_whole_number(
      command, "--vocab-size", recipe_.vocabulary, first_piece_id + 1, largest_vocabulary,
      "The most tokens that SentencePiece may find in text that is not segmented; it always uses 4 threads, "
      "since what it finds depends on their number");
  add_whole_number(command, "--max-tokens", recipe_.most_tokens, 1, 65536,
                   "Tokens of the longest sentence; pairs with a longer one are left out");
  text_options = {
      add_file(command, "--source", files_.source, "Sentences to translate from, one a line"),
      add_file(command, "--target", files_.target, "Their translations, one a line, in the same order"),
      add_file(command, "--valid-source", files_.valid_source,
               "Sentences to validate with; if not given, a twentieth of the pairs, 2,000 at most, is held out"),
      add_file(command, "--valid-target", files_.valid_target, "Their translations")};
}

// Adds options by `add`, which only these models have.
void TranslateProgram::add_for(CLI::App& command, const std::vector<ModelKind>& kinds,
                               const std::function<void()>& add) {
  for (CLI::Option* option : added_by(command, add)) of_models_.push_back({option, kinds});
}

void TranslateProgram::add_model_options(CLI::App& command) {
  using enum ModelKind;
  nn::TransformerConfig& model = recipe_.model;
  begin_group(command, "Model");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_for(command, {transformer, convolutional}, [&] {
    add_whole_number(command, "--encoder-layers", model.num_encoder_layers, 1, 96, "Encoder layers");
    add_whole_number(command, "--decoder-layers", model.num_decoder_layers, 1, 96, "Decoder layers");
  });
  add_for(command, {transformer}, [&] { add_transformer_options(command, model); });
  begin_group(command, "Recurrent and convolutional models");
  add_for(command, {recurrent, convolutional}, [&] {
    add_whole_number(command, "--d-embedding", recipe_.recurrent.d_embedding, 1, 12288, "Width of the embeddings");
  });
  add_for(command, {recurrent}, [&] { add_recurrent_options(command, recipe_.recurrent); });
  add_for(command, {convolutional}, [&] { add_convolutional_options(command, recipe_.convolutional); });
}

void TranslateProgram::add_options(CLI::App& command) {
  // These two come before the others, which change what they choose.
  add_choice(command, "--preset", preset_, translation_preset_names(),
             "A Transformer and its training by name: tiny for tens of thousands of pairs; published, the same model "
             "with Adam, as Wu et al. 2021 trained it; small for hundreds of thousands of pairs; base, the model of "
             "Attention Is All You Need, for millions; other options change it",
             [this](const std::string& name) { recipe_ = translation_preset(name); });
  add_choice(command, "--model", model_, model_names(),
             "Which model: the Transformer, or one of those that it replaced, of the size of the preset tiny",
             [this](const std::string& name) { choose_model(recipe_, name); });
  add_text_options(command);
  add_model_options(command);
  begin_group(command, training_group);
  add_whole_number(command, "--batch-tokens", recipe_.batch_tokens, 1, 10000000,
                   "Tokens of a micro-batch, source or target, whichever has more, padding included; a step has "
                   "--micro-batches of them");
  add_number(command, "--smoothing", recipe_.smoothing, 0, 0.999999, "Label smoothing");
  add_recipe_options(command, recipe_, {.evaluate_every = "an epoch"});
  begin_group(command, evaluation_group);
  add_switch(command, "keep-last", recipe_.keep_last,
             "End with the parameters of the last evaluation, not with those of the lowest loss");
}

// Wrong usage: options of another model than the one that is trained, which would have no effect.
void TranslateProgram::check_model_options() const {
  for (const ModelOption& each : of_models_)
    if (!each.is_of(recipe_.kind) && is_given(each.option))
      usage_error(typed_name(each.option), "is no option of --model " + name_of(recipe_.kind));
  if (recipe_.convolutional.width % 2 == 0) usage_error("--width", "must be odd");
  const nn::LayerOptions& layer = recipe_.model.layer;
  if (layer.d_model % layer.num_heads != 0)
    usage_error("--heads",
                std::to_string(layer.num_heads) + " does not divide --d-model, " + std::to_string(layer.d_model));
}

void TranslateProgram::settle() {
  share_options(recipe_);
  if (preset_ != "tiny" && recipe_.kind != ModelKind::transformer)
    usage_error("--preset " + preset_, "is a Transformer, not a " + name_of(recipe_.kind) + " model");
  check_model_options();
  if (recipe_.batch_tokens <= recipe_.most_tokens)
    usage_error("--batch-tokens", std::to_string(recipe_.batch_tokens) + " is not above --max-tokens, " +
                                      std::to_string(recipe_.most_tokens));
  TrainingRecipe known = recipe_;
  if (known.evaluate_every == TrainingRecipe::automatic) known.evaluate_every = 1;
  check_recipe_options(known);
  for (const ModelOption& each : of_models_)
    if (!each.is_of(recipe_.kind)) std::erase(run.deciding, each.option);
  for (std::string* path : {&files_.source, &files_.target, &files_.valid_source, &files_.valid_target})
    *path = absolute_path(*path);
}

void TranslateProgram::check_given() const {
  if (files_.source.empty()) usage_error("--source", "is required: the file of sentences to translate from");
  if (files_.target.empty()) usage_error("--target", "is required: the file of their translations");
  if (files_.valid_source.empty() != files_.valid_target.empty())
    usage_error("--valid-source, --valid-target", "must be given together");
}

void TranslateProgram::read(const UnfinishedTraining* unfinished) {
  KeptText kept = unfinished ? kept_text(*unfinished) : KeptText();
  if (unfinished) {
    check(!kept.held_out || (files_.valid_source.empty() && files_.valid_target.empty()), "translate",
          "--valid-source, --valid-target: this training holds a part of its pairs out");
    const TranslationRecipe whole = recipe_.with_vocabulary(kept.vocabulary->size());
    if (whole.kind == ModelKind::transformer)
      nn::check_size(whole.model, unfinished->path);
    else
      nn::check_size(whole.parameter_count(), unfinished->path);
  }
  if (!unfinished && !run.init.empty()) kept.vocabulary = vocabulary_in(run.init);
  std::optional<Phase> phase;  // what takes long is said
  data_ = translation_data(files_, recipe_, kept.vocabulary ? &*kept.vocabulary : nullptr,
                           [&](const std::string& what) { phase.emplace(what); });
  check(!unfinished || data_->checksums == kept.checksums, "translate", "the text in ", files_.source, ", ",
        files_.target, " or the files to validate with is not the text that this training began with");
}

Task& TranslateProgram::build() {
  check_parameters_fit("translate", recipe_.with_vocabulary(data_->vocabulary.size()).parameter_count());
  return task_.emplace(recipe_, *data_);
}

Metadata TranslateProgram::of_training() const {
  const Json begun{{"source", files_.source},
                   {"target", files_.target},
                   {"valid_source", files_.valid_source},
                   {"valid_target", files_.valid_target},
                   {"checksums", data_->checksums}};
  return {{origin_key, json_text(begun)}, {std::string(vocabulary_key), data_->vocabulary.to_json()}};
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
  return shortened(harmless(data_->first_source) + "  ->  " + harmless(translation),
                   std::max(width, least + indent) - indent);
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

}  // namespace
}  // namespace translate

void add_translate_train(CLI::App& translate, int& exit_code) {
  add_training(translate, exit_code, std::make_shared<orrery::translate::TranslateProgram>(), "train",
               "Learn to translate from two files; the defaults are for tens of thousands of pairs",
               "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
               "  orrery translate train --resume en-de.safetensors");
}

}  // namespace orrery
