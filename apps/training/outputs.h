// Chapter 9. What a training writes must replace no text that it learns from, and no other file that it needs.
#pragma once

#include <string>
#include <vector>

#include "apps/training/run_options.h"
#include "apps/training/training_files.h"

namespace orrery {

/// A file, and what messages call it: its option, such as "--log", or words, such as "the text to learn,".
struct NamedFile {
  std::string name, path;
};

/// Errors, before any work, of a training that learns from `texts` and writes its log and `others` besides the model:
/// one of these cannot be written, or would replace a model, a file that this training reads, or another that it
/// writes; or the model would replace one of `texts`. It may replace the one that --config names. A path "" is no file.
void check_outputs(const RunOptions& run, const TrainingFiles& files, const std::vector<NamedFile>& texts,
                   const std::vector<NamedFile>& others = {});

}  // namespace orrery
