// Chapter 9. Reads a file as what its metadata say it is: each kind of model, or an unfinished training.
#pragma once

#include <string>

#include "apps/tasks/translate/model.h"
#include "apps/training/training_files.h"
#include "nn/files/files.h"
#include "nn/files/gpt_files.h"
#include "nn/models/transformer.h"
#include "tests/apps/training/line_task.h"

namespace orrery::fuzz {

/// An unfinished training of `program` beside `model`, read as far as --resume reads any.
inline void read_training(const std::string& program, const std::string& model) {
  const TrainingFiles training(program, model);
  const UnfinishedTraining unfinished = read_unfinished(program, training);
  // The tests' smallest training stands for all: a trainer of its recipe takes the state over.
  if (program == "line") small::LineTraining(unfinished.recipe).trainer.load_state(unfinished.state);
}

/// An unfinished training is read from PATH.resume, everything else from PATH.
inline void read_model(const std::string& path, const Metadata& metadata) {
  const auto program = metadata.find("program");
  if (program != metadata.end()) return read_training(program->second, path);
  if (metadata.contains("translation_model")) {
    translate::load_translator(path);
  } else if (metadata.contains("toy_task")) {
    nn::load<nn::Transformer>(path, nn::config_of<nn::TransformerConfig>(metadata, path));
  } else {
    constexpr i64 heads = 3;  // of the GPT-2s among the seeds, which do not say it
    nn::load_gpt(path, metadata.contains(std::string(nn::config_key)) ? 0 : heads);
  }
}

}  // namespace orrery::fuzz
