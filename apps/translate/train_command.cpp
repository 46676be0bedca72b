// Chapter 9. The options of `orrery translate train`, and a training from its first line to its last.
//
// Serves: nn/models/transformer.h
#include "apps/translate/train_command.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/training/memory.h"
#include "apps/training/recipe_options.h"
#include "apps/training/run.h"
#include "apps/training/run_options.h"
#include "apps/translate/saved.h"
#include "core/utf8.h"

namespace orrery {
namespace translate {
namespace {

const std::string command_name = "orrery translate train";

// An option that not all models have.
struct ModelOption {
  CLI::Option* option;
  std::vector<ModelKind> kinds;  // that have it

  bool is_of(ModelKind kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }
};

struct TrainOptions {
  TranslationRecipe recipe = translation_preset("tiny");
  TranslationFiles files;
  RunOptions run;
  std::string preset = "tiny", model = name_of(ModelKind::transformer);
  std::vector<ModelOption> of_models{};
};

// The option and the path of each file of text that is given.
std::vector<std::pair<std::string, std::string>> text_files(const TranslationFiles& files) {
  std::vector<std::pair<std::string, std::string>> given{{"--source", files.source}, {"--target", files.target}};
  if (!files.hold_out()) {
    given.emplace_back("--valid-source", files.valid_source);
    given.emplace_back("--valid-target", files.valid_target);
  }
  return given;
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

// Wrong usage: options of another model than the one that is trained, which would have no effect.
void check_model_options(const TrainOptions& options) {
  const TranslationRecipe& recipe = options.recipe;
  for (const ModelOption& each : options.of_models)
    if (!each.is_of(recipe.kind) && is_given(each.option))
      usage_error(typed_name(each.option), "is no option of --model " + name_of(recipe.kind));
  if (recipe.convolutional.width % 2 == 0) usage_error("--width", "must be odd");
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0)
    usage_error("--heads", "must divide --d-model, " + std::to_string(recipe.model.layer.d_model));
}

// Checks options that decide what is trained against each other, before the training starts.
void check_recipe(const TrainOptions& options) {
  const TranslationRecipe& recipe = options.recipe;
  if (options.preset != "tiny" && recipe.kind != ModelKind::transformer)
    usage_error("--preset " + options.preset, "is a Transformer, not a " + name_of(recipe.kind) + " model");
  check_model_options(options);
  if (recipe.batch_tokens <= recipe.most_tokens)
    usage_error("--batch-tokens", "(" + std::to_string(recipe.batch_tokens) + ") must be larger than --max-tokens, " +
                                      std::to_string(recipe.most_tokens));
  TrainingRecipe known = recipe;
  if (known.evaluate_every == TrainingRecipe::automatic) known.evaluate_every = 1;
  check_recipe_options(known);
}

// The same for the files of text.
void check_files(const TrainOptions& options) {
  if (options.files.source.empty()) usage_error("--source", "is required: the file of sentences to translate from");
  if (options.files.target.empty()) usage_error("--target", "is required: the file of their translations");
  if (options.files.valid_source.empty() != options.files.valid_target.empty())
    usage_error("--valid-source, --valid-target", "must be given together");
}

// Error: what the training writes would replace the text to learn, or one file another.
void check_outputs(const std::string& log, const TranslationFiles& texts, const TrainingFiles& files) {
  check_can_write_text("translate", "--log", log);
  check(!files.writes(log), "translate", "--log ", log, " would write over the files of --save ", files.model());
  for (const auto& [option, path] : text_files(texts)) {
    std::error_code absent;
    check(!std::filesystem::equivalent(log, path, absent), "translate", "--log ", log, " would write over ", option,
          ' ', path);
    check(!files.writes(path), "translate", "--save ", files.model(), " would write over ", option, ' ', path);
  }
}

// Tells a person what the run is doing before its first step. In a file, nobody waits for it.
void say(const std::string& what) {
  if (terminal_of(STDERR_FILENO).live) std::cerr << what << " ..." << std::endl;
}

void print_data(const TranslationOrigin& origin, const TranslationData& data) {
  const i64 most = origin.recipe.most_tokens;
  const auto print = [&](const std::string& what, const Corpus& corpus) {
    std::cerr << what << ": " << corpus.counts.text(most) << ", " << corpus.source.tokens() << " + "
              << corpus.target.tokens() << " tokens\n";
  };
  print("training", data.training);
  print(origin.files.hold_out() ? "validation, held out of these files" : "validation", data.validation);
  std::cerr << "vocabulary of " << data.vocabulary.size()
            << (data.vocabulary.is_segmented() ? " tokens, as segmented\n" : " tokens, by SentencePiece\n");
}

// Errors, before any work: too little memory or disk space for the training.
void check_size(const TranslationTask& task, nn::Module& module, const TrainingFiles& files) {
  const TranslationRecipe& recipe = task.recipe();
  double kept = 0;
  for (const BatchShape& shape : task.batches().shapes()) kept = std::max(kept, task.model().kept_numbers(shape));
  const i64 parameters = module.parameter_count();
  check_memory("translate", {.parameters = parameters, .copies = 1 + numbers_for_each_parameter(recipe), .kept = kept});
  files.check_room(recipe, parameters);
}

// At most so many characters of a line, the last three of them points if it goes on.
std::string shortened(const std::string& line, size_t most) {
  const size_t text = line.find_last_not_of(' ') + 1;
  size_t at = 0, cut = 0, characters = 0;
  for (; at < text && characters < most; ++characters) {
    if (characters + 3 <= most) cut = at;
    at += std::max<size_t>(1, first_character(std::string_view(line).substr(at)).bytes);
  }
  return at >= text ? line.substr(0, text) : line.substr(0, cut) + "...";
}

// The first validation sentence in the model's words, in one line of a terminal. An early model may write very much. If
// the sentence cannot be translated, the training continues, and nothing else is lost.
std::string sample_of(const TranslationTask& task, int descriptor, size_t indent = 0) {
  constexpr size_t in_a_file = 200, least = 20;
  const Terminal terminal = terminal_of(descriptor);
  const size_t width = terminal.live ? static_cast<size_t>(terminal.width) : in_a_file;
  const TranslationData& data = task.data();
  std::string translation;
  try {
    translation = greedy_translations(task.model(), data.vocabulary, {data.validation.source[0]})[0];
  } catch (const Error& error) { translation = std::string("(") + error.what() + ")"; }
  return shortened(harmless(data.first_source) + "  ->  " + harmless(translation),
                   std::max(width, least + indent) - indent);
}

// Seconds that the remaining steps and all evaluations will take. Steps differ in size: one is tried, and an average
// one takes as many times longer as it has more tokens.
double expected_seconds(Trainer& trainer, const TranslationTask& task) {
  const TranslationRecipe& recipe = task.recipe();
  const double of_a_token = trainer.seconds_of_step() / static_cast<double>(task.tokens_read());
  const Corpus& corpus = task.data().training;
  const i64 ends = 2 * corpus.size();
  const double tokens_of_step = static_cast<double>(corpus.source.tokens() + corpus.target.tokens() + ends) /
                                static_cast<double>(task.batches().in_epoch()) *
                                static_cast<double>(recipe.micro_batches);
  return trainer.expected_seconds(of_a_token * tokens_of_step);
}

// Prints a sample of the model and its loss, after a training that has ended or was stopped. Returns that
// loss.
double report(const TrainOptions& options, Trainer& trainer, TranslationTask& task, const Stopwatch& watch) {
  const std::string hash = trainer.hash();
  const bool last = task.recipe().keep_last || trainer.best_step() == 0;
  if (last)
    trainer.end_with_judged();
  else
    trainer.end_with_best();
  const double loss = task.evaluate();
  std::cout << sample_of(task, STDOUT_FILENO) << '\n';
  if (options.run.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss << " per token, perplexity "
            << std::setprecision(2) << std::exp(loss);
  if (trainer.best_step() > 0)
    std::cout << std::setprecision(4) << " (lowest " << trainer.best_loss() << " at step " << trainer.best_step()
              << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s" << std::endl;
  return loss;
}

// Trains from `state`, or from the beginning.
int train(const TrainOptions& options, const TranslationOrigin& origin, const TranslationData& data,
          const TrainingState* state, TrainingFiles& files) {
  const Stopwatch watch;
  TranslationRecipe limited = origin.recipe;
  limited.minutes = options.run.time_limit;
  const Interrupt interrupt;
  print_data(origin, data);
  TranslationTask task(limited, data);
  check_size(task, task.model().module(), files);
  const TranslationRecipe& recipe = task.recipe();
  Trainer trainer(task, recipe, task.model().d_model());
  if (state) trainer.load_state(*state);
  say("timing a step");
  print_start(std::cerr, {.seed = recipe.seed,
                          .parameters = task.model().module().parameter_count(),
                          .expected_seconds = expected_seconds(trainer, task),
                          .time_limit = options.run.time_limit});
  if (state) std::cerr << "resuming after step " << state->steps_done << " of " << recipe.steps << '\n';
  const i64 done_before = trainer.steps_done();
  const SavedParts parts = saved_parts(origin, task);
  TrainingLog log(options.run.log, state != nullptr);
  const RunHooks hooks{.after_evaluation = [&] {
    std::string line;
    trainer.with_judged([&] { line = "  " + sample_of(task, STDERR_FILENO, 2); });
    return line;
  }};
  const std::exception_ptr failure = failure_of([&] { run_steps(trainer, files, parts, log, interrupt, hooks); });
  if (trainer.steps_done() == done_before && !trainer.finished()) {  // the files stay as they are
    if (failure) std::rethrow_exception(failure);
    print_stopped(trainer, files, command_name, false);
    return interrupted;
  }
  end_training(
      failure, [&] { log.score(trainer.steps_done(), "validation loss", report(options, trainer, task, watch)); },
      [&] { save_model(trainer, files, parts, command_name, failure != nullptr); });
  return trainer.finished() ? done : interrupted;
}

int resume(const TrainOptions& options) {
  TrainingFiles files("translate", options.run.resume);
  files.go_on();
  const UnfinishedTraining unfinished = read_unfinished("translate", files);
  ResumedOrigin resumed = origin_of(unfinished, files.resume());
  for (const auto& [given, kept] : {std::pair(&options.files.source, &resumed.origin.files.source),
                                    {&options.files.target, &resumed.origin.files.target},
                                    {&options.files.valid_source, &resumed.origin.files.valid_source},
                                    {&options.files.valid_target, &resumed.origin.files.valid_target}})
    if (!given->empty()) *kept = *given;
  check_outputs(options.run.log, resumed.origin.files, files);
  const TranslationData data = translation_data(resumed.origin.files, resumed.origin.recipe, &resumed.vocabulary, say);
  check(data.checksums == resumed.checksums, "translate", "the text in ", resumed.origin.files.source, ", ",
        resumed.origin.files.target, " or the files to validate with is not the text that this training began with");
  compute_as(unfinished);
  return train(options, resumed.origin, data, &unfinished.state, files);
}

int begin(TrainOptions& options) {
  share_options(options.recipe);
  check_recipe(options);
  TranslationFiles& texts = options.files;  // as absolute paths, for a configuration that is used in another folder
  for (std::string* path : {&texts.source, &texts.target, &texts.valid_source, &texts.valid_target})
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  for (const ModelOption& each : options.of_models)
    if (!each.is_of(options.recipe.kind)) std::erase(options.run.deciding, each.option);
  if (options.run.print_config) return print_config(options.run);
  check_files(options);
  TrainingFiles files("translate", options.run.save);
  check_outputs(options.run.log, texts, files);
  files.begin(options.run.overwrite);
  const TranslationData data = translation_data(texts, options.recipe, nullptr, say);
  return train(options, {.recipe = options.recipe, .options = options.run.chosen(), .files = texts}, data, nullptr,
               files);
}

// Returns the options that name files of text.
std::vector<CLI::Option*> add_text_options(CLI::App& command, TrainOptions& options) {
  TranslationRecipe& recipe = options.recipe;
  begin_group(command, "Text");
  add_flag(command, "--segmented", recipe.segmented,
           "The text is segmented: tokens stand between spaces, and @@ at the end of one joins it to the next");
  add_whole_number(
      command, "--vocabulary", recipe.vocabulary, first_piece_id + 1, largest_vocabulary,
      "The most tokens that SentencePiece may find in text that is not segmented; it always uses 4 threads, "
      "since what it finds depends on their number");
  add_whole_number(command, "--max-tokens", recipe.most_tokens, 1, 65536,
                   "Tokens of the longest sentence; pairs with a longer one are left out");
  TranslationFiles& files = options.files;
  return {add_file(command, "--source", files.source, "Sentences to translate from, one a line"),
          add_file(command, "--target", files.target, "Their translations, one a line, in the same order"),
          add_file(command, "--valid-source", files.valid_source,
                   "Sentences to validate with; if not given, a twentieth of the pairs, 2,000 at most, is held out"),
          add_file(command, "--valid-target", files.valid_target, "Their translations")};
}

// Adds options by `add`, which only these models have.
void add_for(TrainOptions& options, CLI::App& command, const std::vector<ModelKind>& kinds,
             const std::function<void()>& add) {
  const auto before = static_cast<std::ptrdiff_t>(options_of(command).size());
  add();
  const std::vector<CLI::Option*> all = options_of(command);
  for (auto option = all.begin() + before; option != all.end(); ++option) options.of_models.push_back({*option, kinds});
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

void add_recurrent_options(CLI::App& command, nn::RecurrentTranslatorConfig& model) {
  add_whole_number(command, "--d-encoder", model.d_encoder, 1, 12288,
                   "Recurrent: units of each direction of the encoder");
  add_whole_number(command, "--d-decoder", model.d_decoder, 1, 12288, "Recurrent: units of the decoder");
  add_whole_number(command, "--d-attention", model.d_attention, 1, 12288, "Recurrent: width of the keys");
  add_whole_number(
      command, "--d-output", model.d_output, 0, 12288,
      "Recurrent: width of the layer before the logits; 0: none, they are computed from state, context and "
      "word directly");
}

void add_convolutional_options(CLI::App& command, nn::ConvolutionalTranslatorConfig& model) {
  add_whole_number(command, "--d-hidden", model.d_hidden, 1, 12288, "Convolutional: width of the layers");
  add_whole_number(command, "--width", model.width, 1, 99,
                   "Convolutional: positions that each output sees, an odd number");
}

void add_model_options(CLI::App& command, TrainOptions& options) {
  using enum ModelKind;
  TranslationRecipe& recipe = options.recipe;
  nn::TransformerConfig& model = recipe.model;
  begin_group(command, "Model");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_for(options, command, {transformer, convolutional}, [&] {
    add_whole_number(command, "--encoder-layers", model.num_encoder_layers, 1, 96, "Encoder layers");
    add_whole_number(command, "--decoder-layers", model.num_decoder_layers, 1, 96, "Decoder layers");
  });
  add_for(options, command, {transformer}, [&] { add_transformer_options(command, model); });
  begin_group(command, "Recurrent and convolutional models");
  add_for(options, command, {recurrent, convolutional}, [&] {
    add_whole_number(command, "--d-embedding", recipe.recurrent.d_embedding, 1, 12288, "Width of the embeddings");
  });
  add_for(options, command, {recurrent}, [&] { add_recurrent_options(command, recipe.recurrent); });
  add_for(options, command, {convolutional}, [&] { add_convolutional_options(command, recipe.convolutional); });
}

void add_training_options(CLI::App& command, TranslationRecipe& recipe) {
  begin_group(command, training_group);
  add_whole_number(command, "--batch-tokens", recipe.batch_tokens, 1, 10000000,
                   "Tokens of a micro-batch, source or target, whichever has more, padding included; a step has "
                   "--micro-batches of them");
  add_number(command, "--smoothing", recipe.smoothing, 0, 1, "Label smoothing");
  add_recipe_options(command, recipe, {.evaluate_every = "an epoch"});
  begin_group(command, evaluation_group);
  add_switch(command, "keep-last", recipe.keep_last,
             "End with the parameters of the last evaluation, not with those of the lowest loss");
}

void add_train(CLI::App& translate, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command = add_command(
      translate, "train", "Learn to translate from two files; the defaults are a published recipe for 29,000 pairs",
      "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
      "  orrery translate train --resume en-de.safetensors");
  add_config(command);
  // Added before the others, since options take effect in the order they are added: those change the preset.
  add_choice(command, "--preset", options->preset, translation_preset_names(),
             "A Transformer and its training by name: tiny for tens of thousands of pairs, small for hundreds of "
             "thousands, base, the paper's, for millions; other options change it",
             [options](const std::string& name) { options->recipe = translation_preset(name); });
  add_choice(command, "--model", options->model, model_names(),
             "Which model: the Transformer, or one of those that it replaced, of the size of the preset tiny",
             [options](const std::string& name) { choose_model(options->recipe, name); });
  const std::vector<CLI::Option*> texts = add_text_options(command, *options);
  add_model_options(command, *options);
  add_training_options(command, options->recipe);
  add_run_options(command, options->run, texts);
  when_run(command, exit_code, [options] {
    set_up(options->run);
    return options->run.resume.empty() ? begin(*options) : resume(*options);
  });
}

}  // namespace
}  // namespace translate

void add_translate_train(CLI::App& translate, int& exit_code) { translate::add_train(translate, exit_code); }

}  // namespace orrery
