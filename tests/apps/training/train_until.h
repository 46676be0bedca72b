// Chapter 9. What tests do with any trainer: steps, and the evaluations that are due between them.
#pragma once

#include "apps/training/trainer.h"

namespace orrery::small {

/// Goes on until `steps` steps are done since the beginning.
inline void train_until(Trainer& trainer, i64 steps) {
  while (trainer.steps_done() < steps) {
    trainer.step();
    if (trainer.evaluation_is_due()) trainer.evaluate();
  }
}

}  // namespace orrery::small
