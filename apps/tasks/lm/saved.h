// Chapter 9. `orrery lm sample` and `orrery lm eval`: sampling from a saved model, and evaluating it.
//
//   sample   writes token after token, each drawn from the model's probabilities given all earlier ones
//            (nn/generate/sampling.h)
//   eval     the mean over a text of -ln p(token | the earlier ones in its block): in nats, and as perplexity (its
//            exponential). A perplexity of 7 means that each token is as uncertain as a choice among 7 equally likely
//            ones. Models with other tokens are compared by bits: the sum over all tokens, divided by ln 2 and by the
//            number of characters, or of bytes.
#pragma once

#include <string>

#include "core/dtype.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// --load and --heads, which find a GPT. Heads are 0 if the option is not given.
void add_loaded_gpt(CLI::App& command, std::string& path, i64& heads);

void add_lm_sample(CLI::App& lm, int& exit_code);
void add_lm_eval(CLI::App& lm, int& exit_code);

}  // namespace orrery
