// Chapter 9. `orrery translate`: what belongs to translating.
//
//   orrery translate score translated.de reference.de
// Serves: nn/models/transformer.h
#include "apps/program/command.h"
#include "apps/translate/score_command.h"

namespace orrery {

void add_translate(CLI::App& program, int& exit_code) {
  CLI::App& translate = add_command(program, "translate", "Translation: score a translated text",
                                    "Example:\n  orrery translate score translated.de reference.de\n"
                                    "Each has its own --help.");
  add_translate_score(translate, exit_code);
  needs_sub_command(translate);
}

}  // namespace orrery
