// Chapter 9. `orrery lm train`: a training from its first line to its last.
#include "apps/tasks/lm/train_command.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/options.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/tasks/lm/checkpoint.h"
#include "apps/tasks/lm/minutes.h"
#include "apps/tasks/lm/train_options.h"
#include "apps/training/memory.h"
#include "apps/training/outputs.h"
#include "apps/training/run.h"

namespace orrery {
namespace {

constexpr i64 glimpse = 60, last_sample = 300;  // tokens shown at each estimate, and at the end

// A text on one line: new lines and control characters are shown as symbols.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? "\u21b5" : std::string(1, c);
  return harmless(line);
}

// What `written` makes of a sample of the model. If sampling fails, the training continues, and nothing else is lost.
std::string written_by(const LmTask& task, i64 tokens, const std::function<std::string(const std::string&)>& written) {
  try {
    return written(task.sample(tokens));
  } catch (const Error& error) { return std::string("it cannot write: ") + error.what(); }
}

std::string glimpse_of(const LmTask& task) {
  return "  " + task.as_bits(task.last_estimate()) + "\n  " +
         written_by(task, glimpse, [](const std::string& text) { return "it writes: " + on_one_line(text); });
}

// Prints a sample of the model and its losses, after a training that has ended or was stopped. Returns the validation
// loss.
double report(const LmTrainOptions& options, Trainer& trainer, const LmTask& task, const Stopwatch& watch) {
  const std::string hash = trainer.hash();
  const double loss = [&] {
    const Phase phase("computing the loss over the whole text for validation");
    return end_with_better(trainer, task);
  }();
  std::cout << written_by(task, last_sample, [](const std::string& text) { return for_reader(text, STDOUT_FILENO); })
            << '\n';
  if (options.run.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss;
  if (trainer.best_step() > 0)
    std::cout << " (best estimate " << trainer.best_loss() << " at step " << trainer.best_step() << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s, " << task.as_bits(loss) << std::endl;
  return loss;
}

// Seconds that the remaining steps and all evaluations will take, with that of the whole validation text.
double expected_seconds(Trainer& trainer, const LmTask& task, const TextData& data) {
  const double step = trainer.seconds_of_step();
  // Backward takes twice as long as forward.
  const double forward = step / 3 / static_cast<double>(task.tokens_read());
  return trainer.expected_seconds(step) + forward * static_cast<double>(data.validation.count());
}

// The texts to learn, as messages call them.
std::vector<NamedFile> named(const TextFiles& texts) {
  std::vector<NamedFile> files;
  for (const std::string& text : texts.all()) files.push_back({"the text to learn,", text});
  return files;
}

// "text one.txt: 900 characters of 65 kinds, and 100 to validate with"
void print_text(const LmOrigin& origin, const TextData& data) {
  const Tokenizer& tokenizer = data.tokenizer;
  std::cerr << (origin.texts.training.size() == 1 ? "text " : "texts ") << harmless(listed(origin.texts.training))
            << ": " << data.training.count() << ' ' << tokenizer.name();
  if (tokenizer.kind() != TokenKind::bytes) std::cerr << " of " << tokenizer.size() << " kinds";
  std::cerr << ", and " << data.validation.count();
  if (!origin.texts.validation.empty()) std::cerr << " of " << harmless(origin.texts.validation);
  std::cerr << " to validate with\n";
}

// What a training begins with, or is resumed from.
struct Start {
  LmOrigin origin;
  TextData data;
  const TrainingState* state = nullptr;  // of a training that is resumed
  Stopwatch watch{};                     // of the whole command
  std::optional<Deadline> deadline{};    // of --minutes
  double afterwards = 0;                 // seconds of --minutes for what follows the last step
};

// Ends the training in time, and keeps what that changes about it in its files.
std::function<void(const StepResult&)> ending_in_time(Start& start, Trainer& trainer, LmTask& task, SavedParts& parts) {
  // Not built at every change: if memory ran out, its destructor would end the program (ObjectText says why).
  const auto options = std::make_shared<Json>(parse_json_object(start.origin.options, "lm"));
  return [&, options](const StepResult&) {
    const i64 planned = trainer.recipe().steps;
    const bool settled = start.deadline->settles(trainer);
    if (!settled && trainer.recipe().steps == planned) return;
    static_cast<TrainingRecipe&>(start.origin.recipe) = trainer.recipe();
    (*options)["steps"] = trainer.recipe().steps;
    (*options)["cooldown"] = trainer.recipe().cooldown;
    start.origin.options = json_text(*options, 2);
    parts = saved_parts(start.origin, task);
  };
}

TextData data_of(const LmOrigin& origin, i64 block) {
  const Phase phase("cutting " + listed(origin.texts.training) + " into tokens");
  const FileText text = read_tokens(origin.texts.training, origin.tokenizer);
  const std::string& validation = origin.texts.validation;
  if (validation.empty())
    return within("read " + listed(origin.texts.training), [&] { return split(text, origin.tokenizer, block); });
  const FileText judged = read_tokens({validation}, origin.tokenizer);
  return within("read " + listed(origin.texts.all()), [&] { return joined(text, judged, origin.tokenizer, block); });
}

// Errors, before any work: too little memory or disk space for the training.
void check_size(const LmRecipe& recipe, const nn::GptConfig& model, const TrainingFiles& files) {
  check_memory("lm", {.parameters = model.parameter_count(),
                      .copies = 1 + numbers_for_each_parameter(recipe),
                      .kept = kept_numbers(model, recipe.batch, model.max_len)});
  files.check_room(recipe, model.parameter_count());
}

// Seconds from now to the end of the command: what is left of --minutes, or an estimate from the time of a step.
double seconds_to_come(const Start& start, Trainer& trainer, const LmTask& task) {
  if (start.deadline) return start.deadline->seconds_left() + start.afterwards;
  const Phase phase("timing a step");
  return expected_seconds(trainer, task, start.data);
}

RunHooks hooks_of(Start& start, Trainer& trainer, LmTask& task, SavedParts& parts) {
  RunHooks hooks{.after_evaluation = [&] {
    std::string line;
    trainer.with_judged([&] { line = glimpse_of(task); });
    return line;
  }};
  if (start.deadline) {
    hooks.after_step = ending_in_time(start, trainer, task, parts);
    hooks.planned_seconds = start.deadline->seconds_left();
    hooks.is_out_of_time = [&deadline = *start.deadline] { return deadline.overslept(); };
  }
  return hooks;
}

int train(const LmTrainOptions& options, Start& start, TrainingFiles& files) {
  const LmOrigin& origin = start.origin;
  const TextData& data = start.data;
  const TrainingState* state = start.state;
  LmRecipe recipe = origin.recipe.resolved();
  recipe.minutes = options.run.time_limit;
  nn::GptConfig model = recipe.model;
  model.vocab_size = data.tokenizer.size();
  check_size(recipe, model, files);
  print_text(origin, data);
  const Interrupt interrupt;
  std::optional<Phase> phase("making the model");
  LmTask task(recipe, data);
  Trainer trainer(task, recipe, model.layer.d_model);
  if (state) trainer.load_state(*state);
  phase.reset();
  SavedParts parts = saved_parts(origin, task);
  const auto report_score = [&] { return Score{"validation loss", report(options, trainer, task, start.watch)}; };
  const int exit_code = run_training({.command = "orrery lm train",
                                      .trainer = trainer,
                                      .files = files,
                                      .parts = parts,
                                      .options = options.run,
                                      .interrupt = interrupt,
                                      .expected_seconds = seconds_to_come(start, trainer, task),
                                      .hooks = hooks_of(start, trainer, task, parts),
                                      .report = report_score});
  if (start.deadline && exit_code == done)
    std::cerr << "the same again: " << harmless(command_of(options, origin.options)) << '\n';
  return exit_code;
}

// The same names for another folder.
std::vector<std::string> absolute(const std::vector<std::string>& paths) {
  std::vector<std::string> result;
  for (const std::string& path : paths) result.push_back(std::filesystem::absolute(path).string());
  return result;
}

int resume(const LmTrainOptions& options) {
  const Stopwatch watch;
  TrainingFiles files("lm", options.run.resume);
  files.go_on();
  const UnfinishedTraining unfinished = read_unfinished("lm", files);
  LmOrigin origin = origin_of(unfinished);
  if (!options.files.training.empty()) origin.texts.training = absolute(options.files.training);
  if (!options.files.validation.empty()) {
    check(!origin.texts.validation.empty(), "lm", "--valid: this training holds a part of its text out");
    origin.texts.validation = absolute({options.files.validation})[0];
  }
  check_outputs(options.run, files, named(origin.texts));
  options.run.check_earlier_log();
  const auto check_same = [](const std::vector<std::string>& paths, u32 checksum) {
    const Phase phase("reading " + listed(paths));
    check(checksum_of(paths) == checksum, "lm", listed(paths), " is not the text that this training began with");
  };
  check_same(origin.texts.training, origin.text_checksum);
  if (!origin.texts.validation.empty()) check_same({origin.texts.validation}, origin.validation_checksum);
  compute_as(unfinished);
  Start start{.origin = origin,
              .data = data_of(origin, origin.recipe.model.max_len),
              .state = &unfinished.state,
              .watch = watch};
  return train(options, start, files);
}

// What --minutes chooses.
void choose(LmTrainOptions& options, Start& start) {
  options.before_choice = start.origin.options;
  const double left = 60 * options.minutes - start.watch.seconds();
  check(left > 0, "lm", "--minutes leaves no time to train: reading the text took ",
        std::llround(start.watch.seconds()), " s");
  const Choice choice = [&] {
    const Phase phase("timing a few steps");
    return choose_for(left, start.data, options.recipe,
                      [&](const LmRecipe& recipe) { return measured_step(recipe, start.data); });
  }();
  std::cerr << "chosen: " << choice.text() << '\n';
  start.origin.recipe = options.recipe = choice.recipe;
  start.origin.options = options.run.chosen();
  const Stopwatch watch = start.watch;
  start.afterwards = choice.afterwards;
  start.deadline.emplace(60 * options.minutes + choice.slept - choice.afterwards, [watch] { return watch.seconds(); });
}

// A vocabulary of SentencePiece may take minutes.
Tokenizer new_tokenizer(const LmTrainOptions& options, const TextFiles& texts) {
  const Phase phase(options.tokens == TokenKind::sentencepiece
                        ? "SentencePiece learns at most " + std::to_string(options.vocabulary_size) + " tokens"
                        : "looking for the characters of " + listed(texts.all()));
  return tokenizer_of(texts, options.tokens, options.vocabulary_size);
}

int begin(LmTrainOptions& options) {
  const Stopwatch watch;
  options.recipe.model.tied = !options.untied;
  options.recipe = options.recipe.resolved();
  check_options(options.recipe);
  options.files.training = absolute(options.files.training);
  if (!options.files.validation.empty()) options.files.validation = absolute({options.files.validation})[0];
  if (options.run.print_config) return print_config(options.run);
  const TextFiles texts{.training = absolute(text_paths(options.files.training)),
                        .validation = options.files.validation};
  constexpr size_t most_texts = 5000;  // a model, its state and its log keep their names as JSON, which has limits
  check(texts.training.size() <= most_texts && options.run.chosen().size() <= most_json_bytes / 2, "lm",
        texts.training.size(), " files of text are too many for the list that a model keeps; join some, as with cat");
  TrainingFiles files("lm", options.run.save);
  check_outputs(options.run, files, named(texts));
  files.begin(options.run.overwrite);
  options.run.check_earlier_log();
  const auto checksum = [](const std::vector<std::string>& paths) {
    const Phase phase("reading " + listed(paths));
    return checksum_of(paths);
  };
  const LmOrigin origin{.recipe = options.recipe,
                        .options = options.run.chosen(),
                        .texts = texts,
                        .text_checksum = checksum(texts.training),
                        .validation_checksum = texts.validation.empty() ? 0 : checksum({texts.validation}),
                        .tokenizer = new_tokenizer(options, texts)};
  Start start{.origin = origin, .data = data_of(origin, options.recipe.model.max_len), .watch = watch};
  if (options.minutes > 0) choose(options, start);
  return train(options, start, files);
}

}  // namespace

void add_lm_train(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<LmTrainOptions>();
  CLI::App& command = add_command(
      lm, "train",
      "Learn a text; the defaults are nanoGPT's recipe for a CPU, with shuffled blocks and an averaged model",
      "Examples:\n  orrery lm train --save shakespeare.safetensors --seed 3\n"
      "  orrery lm train one.txt two.txt --tokens sentencepiece --save own.safetensors\n"
      "  orrery lm train --resume shakespeare.safetensors");
  add_config(command, options->run.config);
  add_train_options(command, options);
  when_run(command, exit_code, [options] {
    set_up(options->run);
    return options->run.resume.empty() ? begin(*options) : resume(*options);
  });
}

}  // namespace orrery
