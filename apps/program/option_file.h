// Chapter 9. The options of a command as a file: --config FILE reads them, --print-config writes them.
//
//   {
//     "task": "sort",
//     "d-model": 32,
//     "norm-first": true
//   }
// The names are those of --help without the two dashes in front. An option in the file counts as if it were typed,
// except that the same option on the command line wins, and one that excludes it. A training keeps its options in the
// metadata of the files that it saves, so --config also takes a saved model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/files/json.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace orrery {

/// The metadata key under which a saved model keeps the options of its training.
inline const std::string options_key = "options";

/// `--config FILE`; a folder stands for the model in it. Call it before any other option is added, because options take
/// effect in that order. `path` becomes the path of the file, so that a command can check that it does not write there.
/// From a model it takes only `for_models`, a list that may be filled later: a model may come from somebody else. It
/// says what is trained, and never which files are written. Errors, which name the file and the option: the file cannot
/// be read, or is neither JSON nor a model with options in its metadata; there is no such option; a value has the wrong
/// type or is not allowed.
void add_config(CLI::App& command, std::string& path, const std::vector<CLI::Option*>& for_models);

/// Takes `values`, JSON that `values_of` made, for those of `options` that were not typed, as if they were typed, in
/// the order of `options`; then calls `check`. Errors of `operation`: the same as from a file, and what `check` calls
/// wrong usage.
void take_values(const std::vector<CLI::Option*>& options, const std::string& values, const std::string& operation,
                 const std::function<void()>& check);

/// The present values of `options`, as --config takes them. --config itself is left out, as are texts that were not
/// given, and numbers outside their range.
Json values_of(const std::vector<CLI::Option*>& options);

}  // namespace orrery
