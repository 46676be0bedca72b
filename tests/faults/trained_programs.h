// Chapter 9. The programs that train and save, as the tests of faults, kills and crashes start them: one table.
#pragma once

#include <string>
#include <vector>

#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/temporary_folder.h"
#include "tests/faults/folder_state.h"

namespace orrery::faults {

/// A program with a small model and the texts that it learns.
struct TrainedProgram {
  std::string name, command, options;
  bool averages = false;  ///< by default it saves the mean of the parameters at its last evaluations

  /// Arguments of a training that evaluates and saves after every `every` steps; 0: only at its end.
  std::string begin(const std::string& model, int steps, int every) const {
    return command + ' ' + options + "--dropout 0.1 --threads 1 --hash --steps " + std::to_string(steps) +
           " --evaluate-every " + std::to_string(every) + average(every) + " --save '" + model + "' ";
  }
  std::string resume(const std::string& model) const {
    return command + " --threads 1 --hash --resume '" + model + "' ";
  }

 private:
  std::string average(int every) const {
    if (!averages) return "";
    return every > 0 ? " --average-last 1" : " --average-last 0 --patience 0";
  }
};

/// All of them. The texts stand in `folder`.
inline std::vector<TrainedProgram> trained_programs(const TemporaryFolder& folder) {
  const std::string text = folder / "text", english = folder / "a.en", german = folder / "a.de";
  set_contents(text, program::repeated("abc \n", 200));
  set_contents(english, small::animal_text().english);
  set_contents(german, small::animal_text().german);
  return {{"toy", "toy", program::small_toy_options},
          {"lm", "lm train", "'" + text + "' " + program::tiny + "--estimate-batches 1 "},
          {"translate", "translate train",
           "--source '" + english + "' --target '" + german +
               "' --segmented --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 --batch-tokens 40 "
               "--max-tokens 20 ",
           true}};
}

}  // namespace orrery::faults
