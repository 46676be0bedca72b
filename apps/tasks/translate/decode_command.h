// Chapter 9. `orrery translate decode`: translates lines with a saved model.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// Adds `decode` to the sub-command `translate`.
void add_translate_decode(CLI::App& translate, int& exit_code);

}  // namespace orrery
