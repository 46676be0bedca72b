// Chapter 9. What the tests of `orrery lm` share: a training that takes a moment, and texts to learn.
#pragma once

#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

namespace orrery::program {

/// Options of a training that takes a moment: a tiny model, and few steps (`quick_lm`).
inline const std::string tiny = "--batch 2 --block 8 --layers 1 --heads 2 --d-model 8 --d-ff 8 ";
inline const std::string quick_lm = tiny + "--steps 4 --warmup 1 --evaluate-every 2 --estimate-batches 2 ";

using orrery::written;
using small::repeated;

}  // namespace orrery::program
