// Chapter 9. `orrery translate train`: a training from its first line to its last.
#include "apps/tasks/translate/train_command.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/tasks/translate/saved.h"
#include "apps/tasks/translate/train_options.h"
#include "apps/training/memory.h"
#include "apps/training/outputs.h"
#include "apps/training/run.h"
#include "core/utf8.h"

namespace orrery {
namespace translate {
namespace {

// The files of text that are given.
std::vector<NamedFile> named(const TranslationFiles& files) {
  std::vector<NamedFile> given{{"--source", files.source}, {"--target", files.target}};
  if (!files.hold_out()) {
    given.push_back({"--valid-source", files.valid_source});
    given.push_back({"--valid-target", files.valid_target});
  }
  return given;
}

void print_data(const TranslationOrigin& origin, const TranslationData& data) {
  const i64 most = origin.recipe.most_tokens;
  const auto print = [&](const std::string& what, const Corpus& corpus) {
    std::cerr << what << ": " << corpus.counts.text(most) << ", with " << corpus.source.tokens() << " source and "
              << corpus.target.tokens() << " target tokens\n";
  };
  print("training", data.training);
  print(origin.files.hold_out() ? "validation, held out of these files" : "validation", data.validation);
  std::cerr << "vocabulary of " << data.vocabulary.size()
            << (data.vocabulary.is_segmented() ? " tokens, as segmented\n" : " tokens, by SentencePiece\n");
}

// Error, before there is a model: too little memory for the parameters and what is kept of each.
void check_room_for_parameters(const TranslationRecipe& recipe) {
  check_memory("translate", {.parameters = recipe.parameter_count(), .copies = 1 + numbers_for_each_parameter(recipe)});
}

// Error, before they are read: too little memory for the texts.
void check_room_for_texts(const TranslationFiles& files) {
  std::vector<std::string> paths;
  for (const NamedFile& file : named(files)) paths.push_back(file.path);
  check_memory_for_texts("translate", paths);
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

// Seconds that the remaining steps and all evaluations will take. Steps differ in size. So one step is timed, and an
// average one is taken to be in proportion to its tokens.
double expected_seconds(Trainer& trainer, const TranslationTask& task) {
  const Phase phase("timing a step");
  const TranslationRecipe& recipe = task.recipe();
  const double of_a_token = trainer.seconds_of_step() / static_cast<double>(task.tokens_read());
  const Corpus& corpus = task.data().training;
  const i64 ends = 2 * corpus.size();  // each source and each target has an end mark
  const double tokens_of_step = static_cast<double>(corpus.source.tokens() + corpus.target.tokens() + ends) /
                                static_cast<double>(task.batches().in_epoch()) *
                                static_cast<double>(recipe.micro_batches);
  return trainer.expected_seconds(of_a_token * tokens_of_step);
}

// Prints a sample of the model and its loss, after a training that has ended or was stopped. Returns that loss.
double report(const TrainOptions& options, Trainer& trainer, TranslationTask& task, const Stopwatch& watch) {
  const std::string hash = trainer.hash();
  const bool last = task.recipe().keep_last || trainer.best_step() == 0;
  if (last)
    trainer.end_with_judged();
  else
    trainer.end_with_best();
  const double loss = [&] {
    const Phase phase("computing the validation loss");
    return task.evaluate();
  }();
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
  check_room_for_parameters(limited.with_vocabulary(data.vocabulary.size()));
  std::optional<Phase> phase("making the model");
  TranslationTask task(limited, data);
  check_size(task, task.model().module(), files);
  const TranslationRecipe& recipe = task.recipe();
  Trainer trainer(task, recipe, task.model().d_model());
  if (state) trainer.load_state(*state);
  phase.reset();
  const SavedParts parts = saved_parts(origin, task);
  const auto sample = [&] {
    std::string line;
    trainer.with_judged([&] { line = "  " + sample_of(task, STDERR_FILENO, 2); });
    return line;
  };
  const auto report_score = [&] { return Score{"validation loss", report(options, trainer, task, watch)}; };
  return run_training({.command = "orrery translate train",
                       .trainer = trainer,
                       .files = files,
                       .parts = parts,
                       .options = options.run,
                       .interrupt = interrupt,
                       .expected_seconds = expected_seconds(trainer, task),
                       .hooks = {.after_evaluation = sample},
                       .report = report_score});
}

// The texts as tokens; what takes long is said.
TranslationData read_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                          const Vocabulary* vocabulary = nullptr) {
  std::optional<Phase> phase;
  return translation_data(files, recipe, vocabulary, [&](const std::string& what) { phase.emplace(what); });
}

int resume(const TrainOptions& options) {
  TrainingFiles files("translate", options.run.resume);
  files.go_on();
  const UnfinishedTraining unfinished = read_unfinished("translate", files);
  ResumedOrigin resumed = translate::origin_of(unfinished);
  const bool gives_validation = !options.files.valid_source.empty() || !options.files.valid_target.empty();
  check(!gives_validation || !resumed.origin.files.hold_out(), "translate",
        "--valid-source, --valid-target: this training holds a part of its pairs out");
  for (const auto& [given, kept] : {std::pair(&options.files.source, &resumed.origin.files.source),
                                    {&options.files.target, &resumed.origin.files.target},
                                    {&options.files.valid_source, &resumed.origin.files.valid_source},
                                    {&options.files.valid_target, &resumed.origin.files.valid_target}})
    if (!given->empty()) *kept = std::filesystem::absolute(*given).string();
  check_outputs(options.run, files, named(resumed.origin.files));
  options.run.check_earlier_log();
  check_room_for_texts(resumed.origin.files);
  const TranslationData data = read_data(resumed.origin.files, resumed.origin.recipe, &resumed.vocabulary);
  check(data.checksums == resumed.checksums, "translate", "the text in ", resumed.origin.files.source, ", ",
        resumed.origin.files.target, " or the files to validate with is not the text that this training began with");
  compute_as(unfinished);
  return train(options, resumed.origin, data, &unfinished.state, files);
}

int begin(TrainOptions& options) {
  settle(options);
  TranslationFiles& texts = options.files;  // as absolute paths, for a configuration that is used in another folder
  for (std::string* path : {&texts.source, &texts.target, &texts.valid_source, &texts.valid_target})
    if (!path->empty()) *path = std::filesystem::absolute(*path).string();
  if (options.run.print_config) return print_config(options.run);
  check_files(options);
  TrainingFiles files("translate", options.run.save);
  check_outputs(options.run, files, named(texts));
  files.begin(options.run.overwrite);
  options.run.check_earlier_log();
  check_room_for_texts(texts);
  const TranslationData data = read_data(texts, options.recipe);
  return train(options, {.recipe = options.recipe, .options = options.run.chosen(), .files = texts}, data, nullptr,
               files);
}

void add_train(CLI::App& translate, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command = add_command(
      translate, "train", "Learn to translate from two files; the defaults are for tens of thousands of pairs",
      "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
      "  orrery translate train --resume en-de.safetensors");
  add_config(command, options->run.config);
  add_train_options(command, options);
  when_run(command, exit_code, [options] {
    set_up(options->run);
    return options->run.resume.empty() ? begin(*options) : resume(*options);
  });
}

}  // namespace
}  // namespace translate

void add_translate_train(CLI::App& translate, int& exit_code) { translate::add_train(translate, exit_code); }

}  // namespace orrery
