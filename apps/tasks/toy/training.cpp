// Chapter 0. Training and examining the toy: draw a batch, compute its loss, examine the model.
//
// A saved toy: write it, rebuild it from its file, answer with it.
#include "apps/tasks/toy/training.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "apps/program/command.h"
#include "apps/training/recipe.h"
#include "apps/training/training_files.h"
#include "autograd/ops/cross_entropy.h"
#include "nn/files/files.h"
#include "nn/generate/decoding.h"

namespace orrery {
namespace {

// The share of targets, without padding, that have the highest score.
double token_accuracy(const Tensor& logits, const Tensor& gold, i32 pad) {
  const Tensor guess = argmax(logits);
  i64 right = 0, counted = 0;
  for (i64 i = 0; i < gold.count(); ++i) {
    const i32 label = gold.data<i32>()[i];
    counted += label != pad;
    right += label != pad && guess.data<i32>()[i] == label;
  }
  return counted == 0 ? 0 : static_cast<double>(right) / static_cast<double>(counted);
}

}  // namespace

nn::TransformerConfig ToyRecipe::config() const {
  nn::TransformerConfig result = model;
  result.src_vocab_size = result.tgt_vocab_size = task.vocab_size();
  result.pad_id = task.pad;
  result.max_len = std::max(task.source_length(), task.target_length());
  return result;
}

ToyRecipe annotated_recipe() {
  ToyRecipe recipe;
  recipe.task = {.name = "copy",
                 .symbols = 10,
                 .min_length = 10,
                 .max_length = 10,
                 .pad = 0,
                 .begin = 1,
                 .end = -1,
                 .first_symbol = 1,
                 .begin_is_symbol = true};
  recipe.model = {.layer = {.d_model = 512,
                            .num_heads = 8,
                            .d_ff = 2048,
                            .dropout = 0.1,
                            .attention_dropout = 0.1,
                            .activation_dropout = 0.1,
                            .norm_first = true},
                  .num_encoder_layers = 2,
                  .num_decoder_layers = 2,
                  .final_norm = true};
  recipe.steps = 400;
  recipe.batch = 80;
  recipe.warmup = 400;
  recipe.rate = 0.5;
  recipe.cooldown = 0;
  recipe.smoothing = 0;
  recipe.clip = 0;
  return recipe;
}

namespace {

nn::Transformer new_model(const ToyRecipe& recipe) {
  Rng weights = random_numbers(recipe.seed, Purpose::weights);
  return {recipe.config(), weights};
}

i64 labels_of(const Tensor& gold, i32 pad) {
  return std::count_if(gold.data<i32>(), gold.data<i32>() + gold.count(), [=](i32 label) { return label != pad; });
}

}  // namespace

ToyTrainingTask::ToyTrainingTask(ToyRecipe& recipe)
    : model(new_model(recipe)), recipe_(recipe), data_(random_numbers(recipe.seed, Purpose::training)) {
  recipe_.width = recipe.model.layer.d_model;
}

ToyTrainingTask::Batch ToyTrainingTask::next_batch(Rng& numbers, bool held_out) const {
  const ToyTask& task = recipe_.task;
  std::vector<Sequence> sources, targets;
  for (i64 b = 0; b < recipe_.batch; ++b) {
    sources.push_back(task.draw(numbers, held_out));
    targets.push_back(task.target(sources.back()));
  }
  const Tensor target = batch_of(targets, task.target_length(), task.pad);
  return {.source = batch_of(sources, task.source_length(), task.pad),
          .input = slice(target, 1, 0, -1),  // teacher forcing: the decoder reads the correct answer so far
          .gold = slice(target, 1, 1)};      // and predicts its next token
}

std::vector<Items> ToyTrainingTask::draw(i64, i64 micro_batches) {
  batches_.clear();
  std::vector<Items> items;
  for (i64 i = 0; i < micro_batches; ++i) {
    const Batch& batch = batches_.emplace_back(next_batch(data_, false));
    items.push_back({labels_of(batch.gold, recipe_.task.pad), batch.source.count() + batch.input.count()});
  }
  return items;
}

BatchLoss ToyTrainingTask::loss(i64 micro_batch, nn::Pass& pass) {
  const Batch& batch = batches_[static_cast<size_t>(micro_batch)];
  const Variable logits = model(batch.source, batch.input, pass);
  const double accuracy = token_accuracy(logits.value(), batch.gold, recipe_.task.pad);
  return {cross_entropy(logits, batch.gold, {.ignore_index = recipe_.task.pad, .label_smoothing = recipe_.smoothing}),
          accuracy};
}

double ToyTrainingTask::validation_loss() const {
  const NoGradient nothing_recorded;
  constexpr int batches = 10;
  Rng numbers = random_numbers(recipe_.seed, Purpose::extra);
  const auto draw = [&](i64) { return next_batch(numbers, true); };
  const auto judge = [&](const Batch& batch) {
    nn::Pass pass = nn::Pass::inference();
    const Variable loss = cross_entropy(model(batch.source, batch.input, pass), batch.gold,
                                        {.ignore_index = recipe_.task.pad, .reduction = Reduction::sum});
    return Ranks::Numbers{loss.item(), static_cast<double>(labels_of(batch.gold, recipe_.task.pad))};
  };
  const Ranks::Numbers sums = judges().sums(batches, draw, judge);  // of losses and of tokens
  return sums[0] / sums[1];
}

std::vector<Sequence> answers(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources) {
  constexpr size_t at_once = 200;
  const i64 longest = task.target_length() - 1;
  std::vector<Sequence> result;
  for (size_t first = 0; first < sources.size(); first += at_once) {
    const std::vector<Sequence> part(
        sources.begin() + static_cast<std::ptrdiff_t>(first),
        sources.begin() + static_cast<std::ptrdiff_t>(std::min(sources.size(), first + at_once)));
    const Tensor tokens = nn::greedy_decode(model, batch_of(part, task.source_length(), task.pad),
                                            {.bos = task.begin, .eos = task.end, .max_len = longest});
    for (size_t row = 0; row < part.size(); ++row) result.push_back(written(tokens, static_cast<i64>(row), task));
  }
  return result;
}

ToyExam examine(const nn::Transformer& model, const ToyTask& task, i64 count, i64 seed) {
  Rng numbers = random_numbers(seed, Purpose::held_out);
  ToyExam exam;
  for (i64 i = 0; i < count; ++i) exam.sources.push_back(task.draw(numbers, true));
  exam.answers = answers(model, task, exam.sources);
  for (size_t i = 0; i < exam.sources.size(); ++i) exam.right += exam.answers[i] == task.answer(exam.sources[i]);
  return exam;
}

namespace {

constexpr std::string_view toy_task_key = "toy_task";  // in the metadata of a saved model

}  // namespace

SavedToy load_toy(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished("toy", path, metadata);
  const std::string& saved_task = model_entry(metadata, toy_task_key, "toy", path);
  const ToyTask task = within("load " + path, [&] { return toy_task(saved_task); });
  const nn::TransformerConfig config = nn::config_of<nn::TransformerConfig>(metadata, path);
  check(config.src_vocab_size == task.vocab_size() && config.tgt_vocab_size == task.vocab_size(), "toy", path,
        " holds a model of ", config.src_vocab_size, " tokens for a task of ", task.vocab_size());
  return {task, nn::load<nn::Transformer>(path, config)};
}

namespace {

// Answers a line on stdout. Returns false, with an error on stderr, if it cannot be answered. Warns on stderr if its
// length was not trained.
bool answer_line(const SavedToy& saved, const std::string& line, i64 number) {
  const ToyTask& task = saved.task;
  try {
    const Sequence source = task.parse(line);
    const i64 length = static_cast<i64>(source.size());
    if (length < task.min_length)
      std::cerr << "warning: line " << number << " has " << length << (length == 1 ? " symbol" : " symbols")
                << ", and the model was trained on " << task.lengths() << std::endl;
    std::cout << task.text(answers(saved.model, task, {source})[0]) << std::endl;
    return true;
  } catch (const Error& error) {
    std::cerr << "orrery: toy: line " << number << ": " << error.rule() << std::endl;
    return false;
  }
}

}  // namespace

Metadata metadata_of(const nn::Transformer& model, const ToyTask& task) {
  return {{std::string(nn::config_key), nn::to_json(model.config)}, {std::string(toy_task_key), to_json(task)}};
}

int answer_lines(const std::string& path) {
  const SavedToy saved = load_toy(path);
  const bool asked_by_a_person = isatty(STDIN_FILENO) == 1;
  const auto prompt = [&] {
    if (asked_by_a_person) std::cerr << saved.task.name << "> " << std::flush;
  };
  if (asked_by_a_person)
    std::cerr << "Type " << saved.task.lengths() << " symbols of " << saved.task.alphabet()
              << " and Enter; Ctrl-D ends.\n";
  bool all_answered = true;
  i64 number = 0;
  prompt();
  for (std::string line; std::cout.good() && std::getline(std::cin, line); prompt()) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    all_answered = answer_line(saved, line, number) && all_answered;
  }
  if (asked_by_a_person) std::cerr << '\n';
  check(!std::ferror(stdin) && !std::cin.bad(), "toy", "the sequences cannot be read from stdin");
  return all_answered ? done : failed;
}

}  // namespace orrery
