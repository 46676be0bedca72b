// Chapter 9. `orrery lm train`: trains a GPT on a text.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// Adds `train` to the sub-command `lm`.
void add_lm_train(CLI::App& lm, int& exit_code);

}  // namespace orrery
