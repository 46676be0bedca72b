// Chapter 9. `orrery translate`: its sub-commands train, decode and score.
#include "apps/program/command.h"
#include "apps/tasks/translate/decode_command.h"
#include "apps/tasks/translate/score_command.h"

namespace orrery {

void add_translate_train(CLI::App& translate, int& exit_code);  // train.cpp

void add_translate(CLI::App& program, int& exit_code) {
  CLI::App& translate =
      add_command(program, "translate", "Translation: train a translator, translate, score a translated text",
                  "Examples:\n  orrery translate train --source a.en --target a.de --save en-de.safetensors\n"
                  "  orrery translate decode --load en-de.safetensors test.en > translated.de\n"
                  "  orrery translate score translated.de reference.de\n"
                  "Each has its own --help.");
  add_translate_train(translate, exit_code);
  add_translate_decode(translate, exit_code);
  add_translate_score(translate, exit_code);
  needs_sub_command(translate);
}

}  // namespace orrery
