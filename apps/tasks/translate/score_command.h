// Chapter 9. `orrery translate score`: how close a translation is to its references.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

/// Adds `score` to the sub-command `translate`.
void add_translate_score(CLI::App& translate, int& exit_code);

}  // namespace orrery
