// Chapter 0. A saved toy: write it, rebuild it from its file, answer with it.
#include "apps/tasks/toy/saved.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "apps/program/exit_code.h"
#include "apps/tasks/toy/training.h"
#include "apps/training/training_files.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

constexpr std::string_view task_key = "toy_task";  // in the metadata of a saved model

// The contents of a file written by `orrery toy --save`.
struct SavedToy {
  ToyTask task;
  nn::Transformer model;
};
SavedToy load_toy(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished("toy", path, metadata);
  const std::string& saved_task = model_entry(metadata, task_key, "toy", path);
  const ToyTask task = within("load " + path, [&] { return toy_task(saved_task); });
  const nn::TransformerConfig config = nn::config_of<nn::TransformerConfig>(metadata, path);
  check(config.src_vocab_size == task.vocab_size() && config.tgt_vocab_size == task.vocab_size(), "toy", path,
        " holds a model of ", config.src_vocab_size, " tokens for a task of ", task.vocab_size());
  return {task, nn::load<nn::Transformer>(path, config)};
}

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
  return {{std::string(nn::config_key), nn::to_json(model.config)}, {std::string(task_key), to_json(task)}};
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
