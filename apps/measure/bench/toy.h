// Chapter 9. `orrery bench toy`: the time of a whole training of the toy, with its exam on unseen sequences.
#pragma once

#include <string>

#include "core/dtype.h"

namespace orrery {

/// A whole training, and its exam: `right` of `exam_size` unseen sequences were answered without a mistake.
struct ToyFigures {
  std::string task;
  i64 steps = 0, right = 0, exam_size = 0;
  double training_seconds = 0, exam_seconds = 0;
};

/// Trains `task` for `steps` steps, otherwise with the defaults of `orrery toy`.
ToyFigures measure_toy(const std::string& task, i64 steps, i64 seed);

/// "reverse steps=3000 train_s=15.62 step_ms=5.21 exam_s=0.11 exact=1000/1000"
std::string toy_line(const ToyFigures& figures);

}  // namespace orrery
