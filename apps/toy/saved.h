// Chapter 0. The models of `orrery toy` in files: what --save writes, and how --load answers.
//
//   $ echo headache | orrery toy --load reverse.safetensors
//   e h c a d a e h
// Serves: apps/toy/toy.cpp
#pragma once

#include <string>

#include "apps/toy/task.h"
#include "nn/models/transformer.h"

namespace orrery {

/// Writes the model with its configuration and its task: the file alone is enough to rebuild it.
void save_toy(nn::Transformer& model, const ToyTask& task, const std::string& path);

/// Answers each line of stdin on stdout, with the model in the file `path`; returns the exit code. A line that has no
/// answer is an error of one line on stderr, and the next one is read; a length that was never trained on is warned of.
/// A person at a terminal is told what to type. Errors: a file that `orrery toy` did not save.
int answer_lines(const std::string& path);

}  // namespace orrery
