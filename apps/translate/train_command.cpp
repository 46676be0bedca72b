// Chapter 9. The options of `orrery translate train`, and a training from its first line to its last.
//
// Serves: nn/models/transformer.h
#include "apps/translate/train_command.h"

#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/stopwatch.h"
#include "apps/training/memory.h"
#include "apps/training/run.h"
#include "apps/translate/saved.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"

namespace orrery {
namespace translate {
namespace {

const std::string command_name = "orrery translate train";

struct TrainOptions {
  TranslationRecipe recipe = translation_preset("tiny");
  TranslationFiles files;
  std::string preset = "tiny", save, resume, log, keep = "last";
  bool hash = false, overwrite = false;
  double time_limit = 0;  // minutes
  i64 threads = 1, tiles = 1;
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

// Checks options against each other, before the training starts.
void check_options(const TrainOptions& options) {
  const TranslationRecipe& recipe = options.recipe;
  if (options.files.source.empty()) usage_error("--source", "is required: the file of sentences to translate from");
  if (options.files.target.empty()) usage_error("--target", "is required: the file of their translations");
  if (options.files.valid_source.empty() != options.files.valid_target.empty())
    usage_error("--valid-source, --valid-target", "must be given together");
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0)
    usage_error("--heads", "must divide --d-model, " + std::to_string(recipe.model.layer.d_model));
  if (recipe.batch_tokens <= recipe.most_tokens)
    usage_error("--batch-tokens", "(" + std::to_string(recipe.batch_tokens) + ") must be larger than --max-tokens, " +
                                      std::to_string(recipe.most_tokens));
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
  // Of each parameter: itself, its gradient, Adam's two moments, the best so far, and its averages.
  const i64 parameters = module.parameter_count(),
            copies = 5 + (recipe.average > 0 ? 1 : 0) + (recipe.average_last > 0 ? recipe.average_last + 1 : 0);
  check_memory("translate", {.parameters = parameters, .copies = copies, .kept = kept});
  files.check_room(recipe, parameters);
}

// The first validation sentence in the model's words. If it cannot be translated, the training continues, and nothing
// else is lost.
std::string sample_of(const TranslationTask& task) {
  const TranslationData& data = task.data();
  std::string translation;
  try {
    translation = greedy_translations(task.model(), data.vocabulary, {data.validation.source[0]})[0];
  } catch (const Error& error) { translation = std::string("(") + error.what() + ")"; }
  return harmless(data.first_source) + "  ->  " + harmless(translation);
}

// Seconds that the remaining steps and all evaluations will take. Steps differ in size, so several are tried.
double expected_seconds(Trainer& trainer, const TranslationTask& task) {
  const TranslationRecipe& recipe = task.recipe();
  const i64 steps_left = recipe.steps - trainer.steps_done();
  const double a_step = trainer.seconds_of_step() / static_cast<double>(task.tokens_read());
  double tokens = 0;
  for (const BatchShape& shape : task.batches().shapes())
    tokens += static_cast<double>(shape.rows * (shape.source_length + shape.target_length));
  const double tokens_of_step =
      tokens / static_cast<double>(task.batches().in_epoch()) * static_cast<double>(recipe.micro_batches);
  return a_step * tokens_of_step * static_cast<double>(steps_left) +
         trainer.seconds_of_evaluation() * static_cast<double>(steps_left / recipe.evaluate_every);
}

// Prints a sample of the model and its loss, after a training that has ended or was stopped.
void report(const TrainOptions& options, Trainer& trainer, TranslationTask& task, const Stopwatch& watch) {
  const std::string hash = trainer.hash();
  const bool last = task.recipe().keep_last || trainer.best_step() == 0;
  if (last)
    trainer.end_with_judged();
  else
    trainer.end_with_best();
  const double loss = task.evaluate();
  std::cout << sample_of(task) << '\n';
  if (options.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss << " per token, perplexity "
            << std::setprecision(2) << std::exp(loss);
  if (trainer.best_step() > 0)
    std::cout << std::setprecision(4) << " (lowest " << trainer.best_loss() << " at step " << trainer.best_step()
              << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s" << std::endl;
}

// Trains from `state`, or from the beginning.
int train(const TrainOptions& options, const TranslationOrigin& origin, const TranslationData& data,
          const TrainingState* state, TrainingFiles& files) {
  const Stopwatch watch;
  TranslationRecipe limited = origin.recipe;
  limited.minutes = options.time_limit;
  const Interrupt interrupt;
  TranslationTask task(limited, data);
  check_size(task, task.model().module(), files);
  print_data(origin, data);
  const TranslationRecipe& recipe = task.recipe();
  Trainer trainer(task, recipe, task.model().d_model());
  if (state) trainer.load_state(*state);
  print_start(std::cerr, {.seed = recipe.seed,
                          .parameters = task.model().module().parameter_count(),
                          .expected_seconds = expected_seconds(trainer, task)});
  if (state) std::cerr << "resuming after step " << state->steps_done << " of " << recipe.steps << '\n';
  const i64 done_before = trainer.steps_done();
  const SavedParts parts = saved_parts(origin, task);
  TrainingLog log(options.log, state != nullptr);
  const RunHooks hooks{.after_evaluation = [&] {
    std::string line;
    trainer.with_judged([&] { line = "  " + sample_of(task); });
    return line;
  }};
  const std::exception_ptr failure = failure_of([&] { run_steps(trainer, files, parts, log, interrupt, hooks); });
  if (trainer.steps_done() == done_before && !trainer.finished()) {  // the files stay as they are
    if (failure) std::rethrow_exception(failure);
    print_stopped(trainer, files, command_name, false);
    return interrupted;
  }
  end_training(
      failure, [&] { report(options, trainer, task, watch); },
      [&] { save_model(trainer, files, parts, command_name, failure != nullptr); });
  return trainer.finished() ? done : interrupted;
}

int resume(const TrainOptions& options) {
  TrainingFiles files("translate", options.resume);
  files.go_on();
  const UnfinishedTraining unfinished = read_unfinished("translate", files);
  ResumedOrigin resumed = origin_of(unfinished, files.resume());
  for (const auto& [given, kept] : {std::pair(&options.files.source, &resumed.origin.files.source),
                                    {&options.files.target, &resumed.origin.files.target},
                                    {&options.files.valid_source, &resumed.origin.files.valid_source},
                                    {&options.files.valid_target, &resumed.origin.files.valid_target}})
    if (!given->empty()) *kept = *given;
  check_outputs(options.log, resumed.origin.files, files);
  const TranslationData data = translation_data(resumed.origin.files, resumed.origin.recipe, &resumed.vocabulary);
  check(data.checksums == resumed.checksums, "translate", "the text in ", resumed.origin.files.source, ", ",
        resumed.origin.files.target, " or the files to validate with is not the text that this training began with");
  compute_as(unfinished);
  return train(options, resumed.origin, data, &unfinished.state, files);
}

int begin(TrainOptions options) {
  check_options(options);
  set_least_tiles(static_cast<int>(options.tiles));
  TranslationFiles& texts = options.files;
  for (std::string* path : {&texts.source, &texts.target, &texts.valid_source, &texts.valid_target})
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  TrainingFiles files("translate", options.save);
  check_outputs(options.log, texts, files);
  files.begin(options.overwrite);
  const TranslationData data = translation_data(texts, options.recipe);
  return train(options, {.recipe = options.recipe, .files = texts}, data, nullptr, files);
}

void add_text_options(CLI::App& command, TrainOptions& options) {
  TranslationRecipe& recipe = options.recipe;
  begin_group(command, "Text");
  add_flag(command, "--segmented", recipe.segmented,
           "The text is segmented: tokens stand between spaces, and @@ at the end of one joins it to the next");
  add_whole_number(command, "--vocabulary", recipe.vocabulary, first_piece_id + 1, largest_vocabulary,
                   "Tokens that SentencePiece finds in text that is not segmented, at most");
  add_whole_number(command, "--max-tokens", recipe.most_tokens, 1, 65536,
                   "Tokens of the longest sentence; pairs with a longer one are left out");
}

void add_model_options(CLI::App& command, nn::TransformerConfig& model) {
  begin_group(command, "Model");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--encoder-layers", model.num_encoder_layers, 1, 96, "Encoder layers");
  add_whole_number(command, "--decoder-layers", model.num_decoder_layers, 1, 96, "Decoder layers");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_number(command, "--attention-dropout", *model.layer.attention_dropout, 0, 0.99, "The same for attention weights");
  add_number(command, "--activation-dropout", *model.layer.activation_dropout, 0, 0.99,
             "The same inside feed-forward networks");
  add_switch(command, "norm-first", model.layer.norm_first, "Normalise before each sub-layer instead of after it");
  add_switch(command, "final-norm", model.final_norm, "One more normalisation after each stack");
}

void add_recipe_options(CLI::App& command, TrainOptions& options) {
  TranslationRecipe& recipe = options.recipe;
  begin_group(command, "Training");
  add_whole_number(command, "--steps", recipe.steps, 1, 100000000, "Updates, at most");
  add_whole_number(command, "--batch-tokens", recipe.batch_tokens, 1, 10000000,
                   "Tokens of a batch, source or target, whichever has more, padding included");
  add_whole_number(command, "--micro-batches", recipe.micro_batches, 1, 10000, "Batches that make one update");
  add_number(command, "--rate", recipe.rate, 0, 100, "Largest learning rate, at the end of the warm-up");
  add_whole_number(command, "--warmup", recipe.warmup, 1, 100000000, "Steps in which the rate rises");
  add_number(command, "--cooldown", recipe.cooldown, 0, 1, "Last part of the steps, in which the rate falls to 0");
  add_number(command, "--beta1", recipe.beta1, 0, 0.999999, "Adam's decay of the mean of the gradient");
  add_number(command, "--beta2", recipe.beta2, 0, 0.999999, "Adam's decay of the mean of its square");
  add_number(command, "--eps", recipe.eps, 1e-30, 1, "What Adam adds to its square root, against a division by 0");
  add_number(command, "--smoothing", recipe.smoothing, 0, 1, "Label smoothing");
  add_number(command, "--clip", recipe.clip, 0, 1e6, "Largest norm of the gradient; 0 does not clip");
  add_whole_number(command, "--average-last", recipe.average_last, 0, 1000,
                   "Evaluate and save the mean of the parameters at the last so many evaluations; 0: the last ones");
  show_default(add_whole_number(command, "--evaluate-every", recipe.evaluate_every, 1, 100000000,
                                "Steps between evaluations of the validation loss; if not given, an epoch"),
               "");
  add_whole_number(command, "--patience", recipe.patience, 0, 1000000,
                   "End after so many evaluations without a lowest loss; 0: make all steps");
  add_choice(command, "--keep", options.keep, {"best", "last"},
             "Which parameters to end with: those of the lowest validation loss (presets small and base), or those of "
             "the last evaluation (tiny)",
             [&recipe](const std::string& which) { recipe.keep_last = which == "last"; });
  add_seed(command, recipe.seed);
}

void add_run_options(CLI::App& command, TrainOptions& options) {
  begin_group(command, "Run");
  add_tiles(command, options.tiles);
  add_file(command, "--save", options.save,
           "Save the best model in this file, and the state of an unfinished training in FILE.resume");
  add_flag(command, "--overwrite", options.overwrite, "Replace an existing model or unfinished training");
  const std::vector<CLI::Option*> of_a_new_training = options_of(command);
  exclude(
      add_file(command, "--resume", options.resume,
               "Continue the training that --save FILE started, with its options: none of those above may be given"),
      of_a_new_training);
  add_file(command, "--source", options.files.source, "Sentences to translate from, one a line");
  add_file(command, "--target", options.files.target, "Their translations, one a line, in the same order");
  add_file(command, "--valid-source", options.files.valid_source,
           "Sentences to validate with; if not given, a twentieth of the pairs, 2,000 at most, is held out for this");
  add_file(command, "--valid-target", options.files.valid_target, "Their translations");
  add_file(command, "--log", options.log,
           "Write losses and evaluations to this file, one JSON object a line; --resume appends to it");
  add_number(command, "--time-limit", options.time_limit, 0, 1e6,
             "Minutes of training after which it stops as with Ctrl-C; 0: no limit");
  add_threads(command, options.threads);
  add_flag(command, "--hash", options.hash, "Print a fingerprint of losses, parameters and the optimiser's state");
}

void add_train(CLI::App& translate, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command = add_command(
      translate, "train", "Learn to translate from two files; the defaults are a published recipe for 29,000 pairs",
      "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
      "  orrery translate train --resume en-de.safetensors");
  // Added first, since options take effect in the order they are added: the other options change the preset.
  add_choice(command, "--preset", options->preset, translation_preset_names(),
             "Model and training by name: tiny for tens of thousands of pairs, small for hundreds of thousands, base, "
             "the paper's, for millions; other options change it",
             [options](const std::string& name) { options->recipe = translation_preset(name); });
  add_text_options(command, *options);
  add_model_options(command, options->recipe.model);
  add_recipe_options(command, *options);
  add_run_options(command, *options);
  when_run(command, exit_code, [options] {
    set_threads(static_cast<int>(options->threads));
    return options->resume.empty() ? begin(*options) : resume(*options);
  });
}

}  // namespace
}  // namespace translate

void add_translate_train(CLI::App& translate, int& exit_code) { translate::add_train(translate, exit_code); }

}  // namespace orrery
