// Chapter 0. `orrery toy`: the paper's model, small, learns to reverse, copy or sort, and shows what it looks at.
//
// Train it, examine it on 1,000 sequences it has never seen, print five of its answers and the cross-attention of its
// sharpest head: for reverse an anti-diagonal, for copy a diagonal.
// Read next: apps/toy/training.h
#include <unistd.h>

#include <iomanip>
#include <iostream>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "apps/toy/attention_map.h"
#include "apps/toy/training.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

constexpr i64 exam_size = 1000;
constexpr std::string_view task_key = "toy_task";  // in the metadata of a saved model

struct ToyOptions {
  ToyRecipe recipe;
  std::string preset = "small", save, load;
  bool hash = false;
  double require = 0;
  i64 threads = 1, tiles = 1;
};

// Five answers, right or wrong.
void print_answers(const ToyTask& task, const ToyExam& exam) {
  for (size_t i = 0; i < std::min<size_t>(5, exam.sources.size()); ++i) {
    const bool right = exam.answers[i] == task.answer(exam.sources[i]);
    std::cout << task.name << "  " << task.text(exam.sources[i]) << "  ->  " << task.text(exam.answers[i])
              << (right ? "" : "   wrong") << '\n';
  }
}

std::vector<std::string> labels(const ToyTask& task, const Sequence& tokens) {
  std::vector<std::string> result;
  for (i32 token : tokens) result.push_back(token == task.end ? "." : task.text({token}));
  return result;
}

// The cross-attention of the head that looks most sharply, for the first sequence of the exam.
void print_sharpest_head(const nn::Transformer& model, const ToyTask& task, const ToyExam& exam) {
  const NoGradient no_gradient;
  const Sequence& source = exam.sources[0];
  const Sequence target = task.target(source);
  const Tensor ids = batch_of({target}, static_cast<i64>(target.size()), task.pad);
  nn::Pass pass = nn::Pass::inference();
  nn::AttentionMaps maps;
  model(batch_of({source}, task.source_length(), task.pad), slice(ids, 1, 0, -1), pass, &maps);
  const Sequence said(target.begin() + 1, target.end());
  Tensor best;
  size_t best_layer = 0;
  i64 best_head = 0;
  double best_sharpness = -1;
  for (size_t layer = 0; layer < maps.decoder_cross.size(); ++layer) {
    for (i64 head = 0; head < maps.decoder_cross[layer].size(1); ++head) {
      const Tensor map = head_weights(maps.decoder_cross[layer], 0, head);
      const double sharp = sharpness(map, static_cast<i64>(said.size()));
      if (sharp > best_sharpness) best = map, best_layer = layer, best_head = head, best_sharpness = sharp;
    }
  }
  std::cout << "\ncross-attention, decoder layer " << best_layer << ", head " << best_head
            << ": rows are written, columns read\n";
  print_attention(std::cout, best, labels(task, said), labels(task, source));
  std::cout << '\n';
}

// 1 to 10, as the Annotated Transformer asks at its end.
void print_counting(const nn::Transformer& model, const ToyTask& task) {
  Sequence counting(static_cast<size_t>(std::min(task.max_length, task.symbols)));
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = task.first_symbol + static_cast<i32>(i);
  std::cout << task.name << "  " << task.text(counting) << "  ->  " << task.text(answers(model, task, {counting})[0])
            << '\n';
}

void save(nn::Transformer& model, const ToyOptions& options) {
  nn::save(model, options.save,
           {{std::string(nn::config_key), nn::to_json(model.config)},
            {std::string(task_key), to_json(options.recipe.task)}});
  std::cerr << "saved to " << options.save << '\n';
}

int train(const ToyOptions& options) {
  const Stopwatch watch;
  const ToyRecipe& recipe = options.recipe;
  const Interrupt interrupt;
  ToyTraining training(recipe);
  print_start(std::cerr, {.seed = recipe.seed,
                          .parameters = training.model().parameter_count(),
                          .expected_seconds = training.measure(exam_size)});
  Progress progress(std::cerr, terminal_of(STDERR_FILENO), recipe.steps);
  while (training.steps_done() < recipe.steps && !interrupt.requested()) {
    const ToyStep done = training.step();
    progress.update({.step = training.steps_done(),
                     .loss = done.loss,
                     .accuracy = done.accuracy,
                     .rate = recipe.rate(training.steps_done()),
                     .tokens = training.tokens_per_step()});
  }
  if (!options.save.empty()) save(training.model(), options);
  const double trained = watch.seconds();
  const ToyExam exam = examine(training.model(), recipe.task, exam_size, recipe.seed);
  const double seconds = watch.seconds();
  print_answers(recipe.task, exam);
  if (recipe.task.begin_is_symbol) print_counting(training.model(), recipe.task);
  print_sharpest_head(training.model(), recipe.task, exam);
  if (options.hash) std::cout << "hash " << training.hash() << '\n';
  std::cout << "exact match " << exam.right << '/' << exam_size << " in " << std::fixed << std::setprecision(1)
            << seconds << " s: trained in " << trained << " s, decoded in " << seconds - trained << " s" << std::endl;
  if (interrupt.requested()) return interrupted;
  if (static_cast<double>(exam.right) < options.require * exam_size) {
    fail("toy", "fewer answers are right than --require ", options.require, " asks for");
  }
  return done;
}

// What one option alone cannot know; said before the training and not after it.
void check_options(const ToyOptions& options) {
  const ToyRecipe& recipe = options.recipe;
  if (recipe.task.min_length > recipe.task.max_length) {
    usage_error("--min-length", "(" + std::to_string(recipe.task.min_length) + ") must not exceed --max-length, " +
                                    std::to_string(recipe.task.max_length));
  }
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0) {
    usage_error("--heads", "must divide --d-model, " + std::to_string(recipe.model.layer.d_model));
  }
  check_can_save("toy", options.save, recipe.config().parameter_count() * bytes_of(f32));
}

// Rebuilds a saved model and answers each line of stdin.
int answer_lines(const ToyOptions& options) {
  const Metadata metadata = read_safetensors_metadata(options.load);
  const auto entry = [&](std::string_view key) {
    const auto found = metadata.find(std::string(key));
    check(found != metadata.end(), "toy", options.load, " was not saved by orrery toy (it has no ", key, ')');
    return found->second;
  };
  const ToyTask task = toy_task(entry(task_key));
  const nn::TransformerConfig config = nn::transformer_config(entry(nn::config_key));
  check(config.src_vocab_size == task.vocab_size() && config.tgt_vocab_size == task.vocab_size(), "toy", options.load,
        " holds a model of ", config.src_vocab_size, " tokens for a task of ", task.vocab_size());
  const nn::Transformer model = nn::load_transformer(options.load, config);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::cout << task.text(answers(model, task, {task.parse(line)})[0]) << std::endl;
  }
  return done;
}

int run(const ToyOptions& options) {
  set_threads(static_cast<int>(options.threads));
  set_least_tiles(static_cast<int>(options.tiles));
  if (!options.load.empty()) return answer_lines(options);
  check_options(options);
  return train(options);
}

void add_task_options(CLI::App& command, ToyTask& task) {
  add_choice(command, "--task", task.name, {"reverse", "copy", "sort"}, "What to do with a sequence");
  add_whole_number(command, "--symbols", task.symbols, 2, 1000, "Different symbols");
  add_whole_number(command, "--min-length", task.min_length, 1, 512, "Shortest sequence");
  add_whole_number(command, "--max-length", task.max_length, 1, 512, "Longest sequence");
}

void add_model_options(CLI::App& command, nn::TransformerConfig& model) {
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 4096, "Width of the model");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 64, "Attention heads; must divide the width");
  add_whole_number(command, "--encoder-layers", model.num_encoder_layers, 1, 24, "Encoder layers");
  add_whole_number(command, "--decoder-layers", model.num_decoder_layers, 1, 24, "Decoder layers");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 16384, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_number(command, "--attention-dropout", *model.layer.attention_dropout, 0, 0.99, "The same for attention weights");
  add_number(command, "--activation-dropout", *model.layer.activation_dropout, 0, 0.99,
             "The same inside feed-forward networks");
  add_flag(command, "--norm-first", model.layer.norm_first, "Normalise before each sub-layer instead of after it");
  add_flag(command, "--final-norm", model.final_norm, "One more normalisation after each stack");
}

void add_training_options(CLI::App& command, ToyRecipe& recipe) {
  add_whole_number(command, "--steps", recipe.steps, 1, 1000000, "Updates");
  add_whole_number(command, "--batch", recipe.batch, 1, 65536, "Sequences in a batch");
  add_whole_number(command, "--warmup", recipe.warmup, 1, 1000000, "Steps of Noam's warm-up");
  add_number(command, "--rate-factor", recipe.rate_factor, 0, 100, "Multiplies Noam's learning rate");
  add_number(command, "--cooldown", recipe.cooldown, 0, 1, "Last part of the steps, in which the rate falls to 0");
  add_number(command, "--smoothing", recipe.smoothing, 0, 1, "Label smoothing");
  add_number(command, "--clip", recipe.clip, 0, 1e6, "Largest norm of the gradient; 0 does not clip");
  add_seed(command, recipe.seed);
}

}  // namespace

void add_toy(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ToyOptions>();
  CLI::App& command =
      add_command(program, "toy", "Train the paper's model, small, to reverse, copy or sort",
                  "Examples:\n  orrery toy --task sort --seed 3\n  orrery toy --save reverse.safetensors\n"
                  "  echo 'h e l l' | orrery toy --load reverse.safetensors");
  // First, since options take effect in the order they are added: what is given besides changes the preset.
  add_choice(command, "--preset", options->preset, {"small", "annotated"},
             "The defaults below, or the copy task of the Annotated Transformer (d_model 512, 400 steps)",
             [options](const std::string& name) {
               if (name == "annotated") options->recipe = annotated_recipe();
             });
  add_task_options(command, options->recipe.task);
  add_model_options(command, options->recipe.model);
  add_training_options(command, options->recipe);
  CLI::Option* threads = add_threads(command, options->threads);
  add_tiles(command, options->tiles);
  add_file(command, "--save", options->save, "Write parameters and configuration to this file");
  add_flag(command, "--hash", options->hash, "Print a fingerprint of losses, parameters and the optimiser's state");
  add_number(command, "--require", options->require, 0, 1, "Fail when a smaller part of the answers is right");
  std::vector<CLI::Option*> for_training = options_of(command);
  std::erase(for_training, threads);
  exclude(
      add_file(command, "--load", options->load, "Do not train: answer each line of stdin with the model in this file"),
      for_training);
  when_run(command, exit_code, [options] { return run(*options); });
}

}  // namespace orrery
