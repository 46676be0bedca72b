// Chapter 9. The options of every training program for its run: files, time, threads, and options from a file.
//
//   CLI::App& command = add_command(...);
//   add_config(command, options->run.config);    // --config FILE
//   ...                                         // what is trained: task, model, recipe
//   add_run_options(command, options->run);     // how this run goes
// What stands before `add_run_options`, and --tiles, decides what is trained: --resume takes it from the file,
// --print-config prints it, and each saved model keeps it, so that --config with the model trains the same again.
#pragma once

#include <string>
#include <vector>

#include "apps/program/option_file.h"
#include "apps/program/options.h"
#include "apps/training/training_log.h"

namespace orrery {

struct RunOptions {
  std::string config{}, save{}, resume{}, log{};
  bool overwrite = false, print_config = false, hash = false;
  double time_limit = 0;  ///< minutes; 0: no limit
  i64 max_memory = 0;     ///< MB for tensors; 0: nine tenths of what is free at the start
  i64 threads = 1, tiles = 1;
  std::vector<CLI::Option*> deciding{};  ///< the options that decide what is trained

  std::string new_folder{};  ///< to make before the training; "" if --save names none
  /// The file of the model in the folder `path`, whose log is then the folder's, unless another is given. Any other
  /// path as it is. A new folder must end in /.
  std::string in_folder(const std::string& path, bool is_new);

  /// The present values of the deciding options, as JSON that --config takes.
  std::string chosen() const;
  /// What becomes of a log that is there already.
  TrainingLog::Earlier earlier_log() const;
  /// Before any work: the errors of a log that is there already.
  void check_earlier_log() const;
};

/// Makes the folder of --save; sets threads, tiles and the limit of memory. A training that is resumed then takes its
/// own tiles (`compute_as`). Error: the folder cannot be made.
void set_up(const RunOptions& run);
/// What --print-config does. Returns the exit code.
int print_config(const RunOptions& run);

/// Some of the added options, for programs that have more which exclude them.
struct RunOptionHandles {
  CLI::Option *resume, *threads, *print_config;
};
/// Adds --tiles, --save, --overwrite, --print-config, --resume, --log, --time-limit, --max-memory, --threads and
/// --hash. The options `texts`, the files to learn from, were added before, and may be given with --resume all the
/// same.
RunOptionHandles add_run_options(CLI::App& command, RunOptions& run, const std::vector<CLI::Option*>& texts = {});

}  // namespace orrery
