// Chapter 9. `orrery toy`: trains a small version of the paper's model to reverse, copy or sort.
//
// Then it examines the model on 1,000 sequences that the model has never seen, and prints five of the answers and the
// cross-attention of the sharpest head: for reverse an anti-diagonal, for copy a diagonal.
// Read next: the end
#include <unistd.h>

#include <iomanip>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/stopwatch.h"
#include "apps/tasks/toy/attention_map.h"
#include "apps/tasks/toy/loss_curve.h"
#include "apps/tasks/toy/saved.h"
#include "apps/tasks/toy/training.h"
#include "apps/training/memory.h"
#include "apps/training/outputs.h"
#include "apps/training/recipe_options.h"
#include "apps/training/run.h"
#include "apps/training/run_options.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

constexpr i64 exam_size = 1000, answers_shown = 5;
const std::string toy_key = "toy";  // in the metadata of FILE.resume

struct ToyOptions {
  ToyRecipe recipe;
  RunOptions run;
  std::string preset = "small", load, attention, every_head, losses;
  double require = 0;
};

// Some answers, right or wrong.
void print_answers(const ToyTask& task, const ToyExam& exam) {
  for (size_t i = 0; i < answers_shown; ++i) {
    const bool right = exam.answers[i] == task.answer(exam.sources[i]);
    std::cout << task.name << "  " << task.text(exam.sources[i]) << "  ->  " << task.text(exam.answers[i])
              << (right ? "" : "   wrong") << '\n';
  }
}

// Whether --attention asks for a page for a browser, and not for the data of a picture.
bool is_page(const std::string& path) { return path.ends_with(".html"); }

// Prints the cross-attention of the sharpest head for the first sequence of the exam; returns it for `orrery figure`.
std::string show_sharpest_head(const nn::Transformer& model, const ToyTask& task, const ToyExam& exam) {
  const AttentionFigure figure = sharpest_head(model, task, exam.sources[0]);
  std::cout << "\ncross-attention, decoder layer " << figure.layer << ", head " << figure.head
            << ": rows are written, columns read\n";
  print_attention(std::cout, figure);
  std::cout << '\n';
  return to_json(figure);
}

// 1 to 10, as the Annotated Transformer asks at its end.
void print_counting(const nn::Transformer& model, const ToyTask& task) {
  Sequence counting(static_cast<size_t>(std::min(task.max_length, task.symbols)));
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = task.first_symbol + static_cast<i32>(i);
  std::cout << task.name << "  " << task.text(counting) << "  ->  " << task.text(answers(model, task, {counting})[0])
            << '\n';
}

// The results of an examination: how many answers are right, and what --attention and --every-head write.
struct ToyOutcome {
  i64 right = 0;
  std::string attention, every_head;
};

// Examines the best model, or the last one where the training has no evaluations, on sequences it has never seen.
ToyOutcome report(ToyTraining& training, const ToyOptions& options, const Stopwatch& watch) {
  const ToyRecipe& recipe = options.recipe;
  const nn::Transformer& model = training.task.model;
  const double trained = watch.seconds();
  const std::string hash = training.trainer.hash();
  training.trainer.end_with_best();
  const auto print_hash = [&] {
    if (options.run.hash) std::cout << "hash " << hash << '\n';
  };
  ToyExam exam;
  try {
    exam = examine(model, recipe.task, exam_size, recipe.seed);
  } catch (const Error& error) {  // the training diverged, and the model has no finite scores
    print_hash();
    std::cout << "it cannot answer: " << error.what() << std::endl;
    throw;
  }
  const double decoded = watch.seconds() - trained;
  print_answers(recipe.task, exam);
  if (recipe.task.begin_is_symbol) print_counting(model, recipe.task);
  std::string attention = show_sharpest_head(model, recipe.task, exam);
  if (is_page(options.attention))
    attention = attention_page(model, recipe.task, {exam.sources.begin(), exam.sources.begin() + answers_shown}).html();
  print_hash();
  std::cout << "exact match " << exam.right << '/' << exam_size << ", trained in " << std::fixed << std::setprecision(1)
            << trained << " s, decoded in " << decoded << " s" << std::endl;
  if (options.every_head.empty()) return {exam.right, attention, ""};
  return {exam.right, attention, to_json(every_head(model, recipe.task, exam.sources[0]))};
}

// The weights in `outcome` are "" if the model was not examined to the end.
void save_figures(const ToyOptions& options, const std::vector<StepResult>& steps, const ToyOutcome& outcome) {
  const auto save = [](const std::string& path, const std::string& data) {
    if (!path.empty() && !data.empty()) write_text(path, data);
  };
  save(options.losses, to_json(loss_curve(options.recipe, steps)));
  save(options.attention, outcome.attention);
  save(options.every_head, outcome.every_head);
}

// Errors, before any work: too little memory or disk space for the training.
void check_size(const ToyRecipe& recipe, const TrainingFiles& files) {
  const nn::TransformerConfig model = recipe.config();
  check_memory("toy", {.parameters = model.parameter_count(),
                       .copies = 1 + numbers_for_each_parameter(recipe),
                       .kept = kept_numbers(model, recipe.batch, recipe.task.source_length(),
                                            recipe.task.target_length() - 1, LossHead::composed)});
  files.check_room(recipe, model.parameter_count());
}

// Trains with the options `chosen`, which saved models keep, from `state` or from the beginning.
int train(const ToyOptions& options, const std::string& chosen, const TrainingState* state, TrainingFiles& files) {
  const Stopwatch watch;
  ToyRecipe recipe = options.recipe;
  recipe.minutes = options.run.time_limit;
  check_size(recipe, files);
  const Interrupt interrupt;
  ToyTraining training(recipe);
  Trainer& trainer = training.trainer;
  if (state) trainer.load_state(*state);
  const SavedParts parts{
      .save_model = [&](const std::string& path) { save_toy(training.task.model, recipe.task, path, chosen); },
      .origin = {{toy_key, to_json(recipe)}, {options_key, chosen}},
      .model_bytes = nn::saved_bytes(training.task.model)};
  std::vector<StepResult> steps;
  ToyOutcome outcome;
  const auto remember = [&](const StepResult& step) {
    if (!options.losses.empty()) steps.push_back(step);
  };
  const auto report_score = [&] {
    outcome = report(training, options, watch);
    return Score{"exact match", static_cast<double>(outcome.right) / exam_size};
  };
  const int exit_code = run_training({.command = "orrery toy",
                                      .trainer = trainer,
                                      .files = files,
                                      .parts = parts,
                                      .options = options.run,
                                      .interrupt = interrupt,
                                      .expected_seconds = training.expected_seconds(exam_size),
                                      .hooks = {.after_step = remember},
                                      .report = report_score,
                                      .write_figures = [&] { save_figures(options, steps, outcome); }});
  if (exit_code != done) return exit_code;
  if (static_cast<double>(outcome.right) < options.require * exam_size)
    fail("toy", "fewer answers are correct than --require ", options.require, " demands");
  return done;
}

// Wrong usage: more weights than a picture or a page holds, as all heads have for long sequences.
void check_attention(const ToyOptions& options) {
  const ToyRecipe& recipe = options.recipe;
  const i64 weights = attention_weights(recipe.model, recipe.task.source_length(), recipe.task.target_length() - 1);
  const auto check_room = [&](const std::string& option, i64 most) {
    if (weights > most)
      usage_error(option, "takes at most " + std::to_string(most) + " weights, not the " + std::to_string(weights) +
                              " of these layers, heads and lengths");
  };
  if (!options.every_head.empty()) check_room("--every-head", most_head_weights);
  if (is_page(options.attention)) check_room("--attention", AttentionPage::most_weights);
}

// Checks options against each other, before the training starts.
void check_options(const ToyRecipe& recipe) {
  const ToyTask& task = recipe.task;
  if (task.min_length > task.max_length) {
    usage_error("--min-length",
                std::to_string(task.min_length) + " is above --max-length, " + std::to_string(task.max_length));
  }
  if (task.end < 0 && task.min_length < task.max_length) {
    usage_error("--min-length", "must equal --max-length, " + std::to_string(task.max_length) +
                                    ", with --preset annotated, whose answers have no end mark");
  }
  if (task.begin_is_symbol && task.name == "reverse")
    usage_error("--task", "reverse is not for --preset annotated, whose answers begin with symbol 1");
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0) {
    usage_error("--heads", std::to_string(recipe.model.layer.num_heads) + " does not divide --d-model, " +
                               std::to_string(recipe.model.layer.d_model));
  }
  check_recipe_options(recipe);
  try {
    Rng rng(static_cast<u64>(recipe.seed));
    for (const bool held_out : {false, true}) task.draw(rng, held_out);
  } catch (const Error& error) { usage_error("--symbols, --max-length", error.rule()); }
}

// What the training writes besides its model and its log.
std::vector<NamedFile> figures_of(const ToyOptions& options) {
  return {{"--attention", options.attention}, {"--every-head", options.every_head}, {"--losses", options.losses}};
}

int begin(const ToyOptions& options) {
  check_options(options.recipe);
  check_attention(options);
  if (options.run.print_config) return print_config(options.run);
  TrainingFiles files("toy", options.run.save);
  check_outputs(options.run, files, {}, figures_of(options));
  files.begin(options.run.overwrite);
  options.run.check_earlier_log();
  return train(options, options.run.chosen(), nullptr, files);
}

int resume(ToyOptions options) {
  TrainingFiles files("toy", options.run.resume);
  check_outputs(options.run, files, {}, figures_of(options));
  files.go_on();
  options.run.check_earlier_log();
  const UnfinishedTraining unfinished = read_unfinished("toy", files);
  const std::string& kept_recipe = entry_of(unfinished, "toy", toy_key);
  options.recipe = within("load " + unfinished.path, [&] { return toy_recipe(kept_recipe, unfinished.recipe); });
  check_attention(options);
  nn::check_size(options.recipe.config(), unfinished.path);
  compute_as(unfinished);
  return train(options, entry_of(unfinished, "toy", options_key), &unfinished.state, files);
}

int run(const ToyOptions& options) {
  set_up(options.run);
  if (!options.load.empty()) return answer_lines(options.load);
  return options.run.resume.empty() ? begin(options) : resume(options);
}

void add_task_options(CLI::App& command, ToyTask& task) {
  begin_group(command, "Task");
  add_choice(command, "--task", task.name, {"reverse", "copy", "sort"}, "What to do with a sequence");
  add_whole_number(command, "--symbols", task.symbols, 2, 1000, "How many different symbols there are");
  add_whole_number(command, "--min-length", task.min_length, 1, 512, "Shortest sequence");
  add_whole_number(command, "--max-length", task.max_length, 1, 512, "Longest sequence");
}

void add_model_options(CLI::App& command, nn::TransformerConfig& model) {
  begin_group(command, "Model");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 4096, "Width of the model");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 64, "Attention heads; must divide the width");
  add_whole_number(command, "--encoder-layers", model.num_encoder_layers, 1, 24, "Encoder layers");
  add_whole_number(command, "--decoder-layers", model.num_decoder_layers, 1, 24, "Decoder layers");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 16384, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_number(command, "--attention-dropout", *model.layer.attention_dropout, 0, 0.99, "The same for attention weights");
  add_number(command, "--activation-dropout", *model.layer.activation_dropout, 0, 0.99,
             "The same inside feed-forward networks");
  add_switch(command, "norm-first", model.layer.norm_first, "Normalise before each sub-layer instead of after it");
  add_switch(command, "final-norm", model.final_norm, "One more normalisation after each stack");
}

void add_training_options(CLI::App& command, ToyRecipe& recipe) {
  begin_group(command, training_group);
  add_whole_number(command, "--batch", recipe.batch, 1, 65536, "Sequences in a batch");
  add_number(command, "--smoothing", recipe.smoothing, 0, 0.999999, "Label smoothing");
  add_recipe_options(command, recipe);
}

}  // namespace

void add_toy(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ToyOptions>();
  CLI::App& command =
      add_command(program, "toy", "Train a small version of the paper's model to reverse, copy or sort",
                  "Examples:\n  orrery toy --task sort --seed 3\n  orrery toy --save reverse.safetensors\n"
                  "  echo headache | orrery toy --load reverse.safetensors");
  add_config(command, options->run.config);
  // Added before the others, since options take effect in the order they are added: those change the preset.
  add_choice(command, "--preset", options->preset, {"small", "annotated"},
             "The defaults below, or the copy task of the Annotated Transformer (d_model 512, 400 steps)",
             [options](const std::string& name) {
               if (name == "annotated") options->recipe = annotated_recipe();
             });
  add_task_options(command, options->recipe.task);
  add_model_options(command, options->recipe.model);
  add_training_options(command, options->recipe);
  const RunOptionHandles handles = add_run_options(command, options->run);
  exclude(add_output_file(
              command, "--losses", options->losses,
              "Write the loss and the accuracy of each step to this file, for orrery figure toy_loss --data; not "
              "with --resume"),
          {handles.resume});
  add_output_file(
      command, "--attention", options->attention,
      "Write the weights of the sharpest head to this file, for orrery figure attention --data; a name that ends "
      "in .html gets a page for a browser with every head");
  add_output_file(command, "--every-head", options->every_head,
                  "Write the weights of every head to this file, for orrery figure toy_heads --data");
  add_number(command, "--require", options->require, 0, 1, "Exit with 1 if a smaller share of the answers is correct");
  std::vector<CLI::Option*> for_training = options_of(command);
  std::erase(for_training, handles.threads);
  exclude(take_folders(add_file(command, "--load", options->load,
                                "Do not train: answer each line of stdin with the model in this file, or in the folder "
                                "of --save FOLDER/. Only --threads may be given as well")),
          for_training);
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
