// Chapter 9. The options of every training program: for its recipe, one for each field of TrainingRecipe, named like
// it; for its run: files, time, threads, and options from a file.
//
// `RunOptions::deciding` lists the options that decide what is trained: --resume takes them from the file,
// --print-config prints them, and each saved model keeps them, so that --config with the model trains the same again.
// A program (apps/training/program.h) says which these are. It gives its defaults in the recipe that it passes.
//
// Options for the fields of a model's configuration, from what it says of them (nn/models/fields.h).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/program/option_file.h"
#include "apps/program/options.h"
#include "apps/training/recipe.h"
#include "apps/training/training_files.h"
#include "apps/training/training_log.h"
#include "nn/models/stack.h"

namespace orrery {

/// What TrainingRecipe::automatic stands for, such as "an epoch", in the help of a program that allows it.
struct AutomaticValues {
  std::string warmup{}, evaluate_every{}, steps{}, rate{};
};

/// Adds the options for `recipe` in four groups: Training, Optimiser, Learning rate, Evaluation.
void add_recipe_options(CLI::App& command, TrainingRecipe& recipe, const AutomaticValues& automatic = {});

/// Wrong usage, in terms of the options: a recipe with which no training is possible.
void check_recipe_options(TrainingRecipe recipe);

struct RunOptions {
  std::string config{}, init{}, save{}, resume{}, log{};
  bool overwrite = false, print_config = false, hash = false;
  bool ranks = false;         ///< share the steps among the processes of mpirun
  std::string sum = "exact";  ///< how their gradients are added: "exact" or "fast"
  double time_limit = 0;      ///< minutes; 0: no limit
  i64 max_memory = 0;         ///< MB for tensors; 0: nine tenths of what is free at the start
  i64 threads = 1;
  ProductOptions products{};
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

/// Makes the folder of --save; sets threads, how products are computed, and the limit of memory. A training that is
/// resumed then computes them as it did before (`compute_as`). Errors: the folder cannot be made; bf16 by BLAS.
void set_up(const RunOptions& run);
/// What --print-config does. Returns the exit code.
int print_config(const RunOptions& run);

/// Some of the added options, for programs that have more which exclude them.
struct RunOptionHandles {
  CLI::Option *resume, *threads, *print_config, *init;
};
/// Adds --products, --precision and --init, which are among the deciding options, --save, --overwrite, --print-config,
/// --resume, --log, --time-limit, --max-memory, --threads and --hash. The options `texts`, the files to learn from,
/// were added before, and may be given with --resume all the same.
RunOptionHandles add_run_options(CLI::App& command, RunOptions& run, const std::vector<CLI::Option*>& texts = {});

/// Takes the values of those of `options` that were not typed from the options of the training of the model at `path`,
/// if its metadata have any. Errors: those of `take_values`.
void take_kept(const std::vector<CLI::Option*>& options, const Metadata& metadata, const std::string& path);

/// A file, and what messages call it: its option, such as "--log", or words, such as "the text to learn,".
struct NamedFile {
  std::string name, path;
};

/// Errors, before any work, of a training that learns from `texts` and writes its log and `others` besides the model:
/// one of these cannot be written, or would replace a model, a file that this training reads, or another that it
/// writes; or the model would replace one of `texts`. It may replace the one that --config names. A path "" is no file.
void check_outputs(const RunOptions& run, const TrainingFiles& files, const std::vector<NamedFile>& texts,
                   const std::vector<NamedFile>& others = {});

/// An option for a field: "--d-model" for d_model, "--heads" for num_heads, "--bias" and "--no-bias" for bias.
CLI::Option* add_field(CLI::App& command, const nn::Field& field, i64& value);
CLI::Option* add_field(CLI::App& command, const nn::Field& field, double& value);
CLI::Option* add_field(CLI::App& command, const nn::Field& field, bool& value);
/// The same for a field that has a value.
CLI::Option* add_field(CLI::App& command, const nn::Field& field, std::optional<double>& value);

/// Wrong usage: --heads does not divide --d-model.
void check_heads(const nn::LayerOptions& layer);

/// A field that gets an option, perhaps of another name.
struct FieldOption {
  FieldOption(const char* field, const char* option = nullptr) : field(field), option(option ? option : field) {}
  std::string_view field;
  const char* option;
};
/// Options for some fields of `config`, in this order. Error: it has no such field, or one without a help text.
template <class Config> void add_fields(CLI::App& command, Config& config, std::initializer_list<FieldOption> chosen) {
  for (const FieldOption& each : chosen) {
    bool is_added = false;
    for_each_field(config, [&](nn::Field field, auto& value) {
      if (field.name != each.field || !*field.help) return;
      field.name = each.option;
      if constexpr (requires { add_field(command, field, value); })
        is_added = add_field(command, field, value) != nullptr;
    });
    check(is_added, "options", "no option can be made of ", each.field);
  }
}

}  // namespace orrery
