// Chapter 9. The options for a training's run.
#include "apps/training/run_options.h"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/program/exit_code.h"
#include "apps/program/option_file.h"
#include "apps/program/system.h"
#include "core/files/file.h"
#include "core/machine/memory.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"

namespace orrery {

namespace {
constexpr i64 megabyte = i64{1} << 20, most_megabytes = i64{1} << 24;
}  // namespace

std::string RunOptions::chosen() const { return json_text(values_of(deciding), 2); }

TrainingLog::Earlier RunOptions::earlier_log() const {
  if (!resume.empty()) return TrainingLog::Earlier::continued;
  return overwrite ? TrainingLog::Earlier::replaced : TrainingLog::Earlier::kept;
}

void RunOptions::check_earlier_log() const {
  std::error_code absent;
  if (std::filesystem::exists(log, absent)) TrainingLog(log, earlier_log());
}

std::string RunOptions::in_folder(const std::string& path, bool is_new) {
  const std::filesystem::path model = model_in(path);
  if (model == path || (is_new && !path.ends_with('/'))) return path;
  if (is_new) new_folder = model.parent_path();
  const std::filesystem::path log_there = model.parent_path() / log_in_folder;
  std::error_code absent;
  if (log.empty() && (is_new || std::filesystem::exists(log_there, absent))) log = log_there;
  return model;
}

RunOptionHandles add_run_options(CLI::App& command, RunOptions& run, const std::vector<CLI::Option*>& texts) {
  begin_group(command, "Run");
  add_tiles(command, run.tiles);
  run.deciding = options_of(command);
  const auto folder_of = [&run](bool is_new) {
    return [&run, is_new](const std::string& path) { return run.in_folder(path, is_new); };
  };
  change_text(add_file(command, "--save", run.save,
                       "Save the best model in this file, and the state of an unfinished training in FILE.resume. A "
                       "name that ends in / means a folder, for the model (model.safetensors) and the log (log.jsonl)"),
              folder_of(true));
  add_flag(command, "--overwrite", run.overwrite, "Replace an existing model, unfinished training or log");
  CLI::Option* print_config = add_flag(command, "--print-config", run.print_config,
                                       "Do not train: print the options that decide what is trained, for --config");
  std::vector<CLI::Option*> of_a_new_training = options_of(command);
  for (const CLI::Option* text : texts) std::erase(of_a_new_training, text);
  CLI::Option* resume =
      add_file(command, "--resume", run.resume,
               "Continue the training that --save FILE started, with its options: none of those above may be given" +
                   std::string(texts.empty() ? "" : ", except texts that are elsewhere now"));
  change_text(resume, folder_of(false));
  exclude(resume, of_a_new_training);
  add_file(command, "--log", run.log,
           "Write options, losses, evaluations and samples to this file, one JSON object a line, for orrery report; "
           "--resume appends to it, and only --overwrite replaces one that is there");
  add_number(command, "--time-limit", run.time_limit, 0, 1e6,
             "Stop after this many minutes of training, as after Ctrl-C; 0: no limit");
  show_default(add_whole_number(command, "--max-memory", run.max_memory, 1, most_megabytes,
                                "Largest memory for tensors, in MB, and for the texts of a translator; if not given, "
                                "nine tenths of what is free at the start. A training that needs more ends with an "
                                "error: if it swapped, it would be many times slower, and so would every other "
                                "program"),
               "");
  CLI::Option* threads = add_threads(command, run.threads);
  add_flag(command, "--hash", run.hash, "Print a fingerprint of losses, parameters and the optimiser's state");
  return {resume, threads, print_config};
}

void set_up(const RunOptions& run) {
  if (!run.new_folder.empty() && !run.print_config) make_folder(run.new_folder);
  set_threads(static_cast<int>(run.threads));
  set_least_tiles(static_cast<int>(run.tiles));
  const SystemMemory memory = memory_of(SystemFiles());
  // A tenth is left for texts and threads, and because the system only estimates what is available.
  i64 limit = memory.available / 10 * 9;
  if (memory.total > 0) limit = std::max(limit, megabyte);  // 0 would mean that there is no limit
  limit_memory(run.max_memory > 0 ? run.max_memory * megabyte : limit);
}

int print_config(const RunOptions& run) {
  std::cout << run.chosen() << std::endl;
  return done;
}

}  // namespace orrery
