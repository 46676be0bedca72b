// Chapter 9. The options for constraints on what is written, of `orrery lm sample`, `translate decode` and `summarise`.
#pragma once

#include "apps/program/options.h"
#include "nn/generate/constraints.h"

namespace orrery {

/// --repetition-penalty and --no-repeat-ngram.
inline void add_constraints(CLI::App& command, nn::Constraints& constraints) {
  add_number(command, "--repetition-penalty", constraints.repetition_penalty, 1, 1000,
             "Make tokens that are written already less likely: positive scores are divided by this number, negative "
             "ones multiplied; 1: none");
  add_whole_number(command, "--no-repeat-ngram", constraints.no_repeat_ngram, 0, 1000,
                   "Never write the same N tokens in a row twice; 0: repeat anything");
}

}  // namespace orrery
