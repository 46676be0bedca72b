// Chapter 9. `orrery lm sample` and `orrery lm eval`: a saved model writes on, and is judged.
//
//   sample   token after token, each drawn from what the model gives after all before it (nn/generate/sampling.h)
//   eval     the mean of -ln p(character | those before it in its block) over a text: in nats; over ln 2 in bits; as
//            perplexity, exp of it: out of so many equally likely characters each seems to be drawn
// Serves: nn/models/gpt.h
#pragma once

#include "apps/program/command.h"

namespace orrery {

void add_lm_sample(CLI::App& lm, int& exit_code);
void add_lm_eval(CLI::App& lm, int& exit_code);

}  // namespace orrery
