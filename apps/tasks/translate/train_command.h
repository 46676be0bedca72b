// Chapter 9. `orrery translate train`: trains a translator on two files of sentences.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// Adds `train` to the sub-command `translate`.
void add_translate_train(CLI::App& translate, int& exit_code);

}  // namespace orrery
