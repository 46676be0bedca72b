// Chapter 0. The models of `orrery toy` in files: what --save writes, and how --load answers.
//
//   $ echo headache | orrery toy --load reverse.safetensors
//   e h c a d a e h
#pragma once

#include <string>

#include "apps/tasks/toy/task.h"
#include "core/files/safetensors.h"
#include "nn/models/transformer.h"

namespace orrery {

/// What a saved model says about itself: its configuration and its task. The file is all that is needed to rebuild it.
Metadata metadata_of(const nn::Transformer& model, const ToyTask& task);

/// Answers each line of stdin on stdout, with the model in the file `path`; returns the exit code. For a line that
/// cannot be answered it prints one line on stderr and continues; for a length that was not trained it prints a
/// warning. On a terminal it says what to type. Errors: a file that `orrery toy` did not save.
int answer_lines(const std::string& path);

}  // namespace orrery
