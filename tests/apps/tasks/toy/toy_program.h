// Chapter 0. What the tests of `orrery toy` share: trainings that take a moment.
#pragma once

#include "tests/apps/run_program.h"

namespace orrery::program {

/// Learns next to nothing, in a moment.
inline const std::string small_toy_options =
    "--batch 4 --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 --max-length 9 ";
inline const std::string quick_toy = "toy --steps 3 " + small_toy_options;

}  // namespace orrery::program
