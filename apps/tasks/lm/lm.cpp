// Chapter 9. `orrery lm`: trains a GPT on a text, and samples from it.
//
//   orrery lm train --save shakespeare.safetensors
//   orrery lm sample --load shakespeare.safetensors --prompt ROMEO:
//   orrery lm eval --load shakespeare.safetensors
//   orrery lm export --load shakespeare.safetensors --save for-transformers/
//   orrery lm train --tokens sentencepiece one.txt two.txt --save own.safetensors
#include "apps/program/command.h"
#include "apps/tasks/lm/export.h"
#include "apps/tasks/lm/saved.h"

namespace orrery {

void add_lm_train(CLI::App& lm, int& exit_code);  // train.cpp

void add_lm(CLI::App& program, int& exit_code) {
  CLI::App& lm =
      add_command(program, "lm", "A language model: train a GPT on a text, sample from it, evaluate it, export it",
                  "Example:\n  orrery lm train\nEach has its own --help.");
  add_lm_train(lm, exit_code);
  add_lm_sample(lm, exit_code);
  add_lm_eval(lm, exit_code);
  add_lm_export(lm, exit_code);
  needs_sub_command(lm);
}

}  // namespace orrery
