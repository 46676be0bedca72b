// Chapter 9. The options for a training's recipe, with their ranges, and for its run.
//
// Options for the fields of a model's configuration.
#include "apps/training/options.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/option_file.h"
#include "apps/program/output_file.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"

namespace orrery {
namespace {

constexpr i64 most_megabytes = i64{1} << 24;

std::string option_of(const nn::Field& field) {
  std::string name = field.name;
  constexpr std::string_view counted = "num_";
  if (name.starts_with(counted)) name.erase(0, counted.size());
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// "average_last" in a message becomes "--average-last"; other words stay.
std::string with_option_names(const std::string& message, const std::vector<std::string>& fields) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  std::string result;
  for (auto at = message.begin(); at != message.end();) {
    const auto end = in_word(*at) ? std::find_if_not(at, message.end(), in_word) : at + 1;
    std::string word(at, end);
    if (std::find(fields.begin(), fields.end(), word) != fields.end()) {
      std::replace(word.begin(), word.end(), '_', '-');
      word = "--" + word;
    }
    result += word;
    at = end;
  }
  return result;
}

}  // namespace

void add_recipe_options(CLI::App& command, TrainingRecipe& recipe, const AutomaticValues& automatic) {
  std::string group;
  for_each_field(recipe, [&]<class T>(const RecipeField& field, T& value) {
    if (field.group != group) begin_group(command, group = field.group);
    const std::string_view name = field.name;
    const std::string option = "--" + option_of(field);
    const std::string follows = name == "warmup"           ? automatic.warmup
                                : name == "evaluate_every" ? automatic.evaluate_every
                                : name == "steps"          ? automatic.steps
                                : name == "rate"           ? automatic.rate
                                                           : "";
    const std::string help = field.help + (follows.empty() ? "" : "; if not given, " + follows);
    if constexpr (std::is_enum_v<T>) {
      add_choice(command, option, value, help);
    } else {
      CLI::Option* added = nullptr;
      if constexpr (std::is_same_v<T, double>)
        added = add_number(command, option, value, field.least, field.most, help);
      else
        added =
            add_whole_number(command, option, value, static_cast<i64>(field.least), static_cast<i64>(field.most), help);
      if (!follows.empty()) show_default(added, "");
    }
    if (name == "micro_batches") add_seed(command, recipe.seed);
  });
}

void check_recipe_options(TrainingRecipe recipe) {
  constexpr i64 automatic = TrainingRecipe::automatic;
  if (recipe.evaluate_every == automatic) recipe.evaluate_every = 1;
  if (recipe.warmup == automatic) recipe.warmup = 1;
  if (recipe.steps == automatic) recipe.steps = std::numeric_limits<i32>::max();
  try {
    recipe.validate();
  } catch (const Error& error) { usage_error("recipe", with_option_names(error.rule(), field_names(recipe))); }
}

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
  for (CLI::Option* option : add_products(command, run.products)) run.deciding.push_back(option);
  CLI::Option* init = change_text(
      take_folders(add_file(command, "--init", run.init,
                            "Start from the weights of this model, as far as they fit, and with its tokens, instead of "
                            "random ones; what does not fit is said")),
      [](const std::string& path) { return std::filesystem::absolute(path).string(); });
  run.deciding.push_back(init);
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
  add_flag(command, "--ranks", run.ranks,
           "Share the micro-batches of each step among the processes of mpirun: mpirun -np 4 orrery ... --ranks. The "
           "bits are equal for any number of them; without --micro-batches, a step has one for each");
  add_choice(command, "--sum", run.sum, {"exact", "fast"},
             "How ranks add their gradients: in one order, with equal bits, or as MPI does it fastest");
  add_flag(command, "--hash", run.hash, "Print a fingerprint of losses, parameters and the optimiser's state");
  return {resume, threads, print_config, init};
}

void set_up(const RunOptions& run) {
  if (!run.new_folder.empty() && !run.print_config) make_folder(run.new_folder);
  set_threads(static_cast<int>(run.threads));
  set_products(run.products);
  limit_tensors(run.max_memory);
}

int print_config(const RunOptions& run) {
  std::cout << run.chosen() << std::endl;
  return done;
}

void check_outputs(const RunOptions& run, const TrainingFiles& files, const std::vector<NamedFile>& texts,
                   const std::vector<NamedFile>& others) {
  const std::string& program = files.program();
  for (const NamedFile& text : texts)
    check(!files.writes(text.path), program, "--save ", files.model(), " would write over ", text.name, ' ', text.path);
  check(run.init.empty() || !files.writes(run.init), program, "--save ", files.model(), " would write over --init ",
        run.init);
  std::vector<NamedFile> read = texts, outputs = others;
  read.push_back({"the file of --config,", run.config});
  outputs.push_back({"--log", run.log});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    check_can_write_text(program, option, path);
    check(!files.writes(path), program, option, ' ', path, " would write over the files of --save ", files.model());
    for (const NamedFile& file : read)
      check(!is_same_file(path, file.path), program, option, ' ', path, " would write over ", file.name, ' ',
            file.path);
    for (size_t k = 0; k < i; ++k)
      check(!is_same_file(path, outputs[k].path), program, option, " and ", outputs[k].name, " name the same file, ",
            path);
  }
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, i64& value) {
  const i64 least = field.rule == nn::Rule::positive ? 1 : 0;
  return add_whole_number(command, "--" + option_of(field), value, least, field.most_offered, field.help);
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, double& value) {
  const double most = field.rule == nn::Rule::probability ? 0.99 : static_cast<double>(field.most_offered);
  return add_number(command, "--" + option_of(field), value, 0, most, field.help);
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, bool& value) {
  return add_switch(command, option_of(field), value, field.help);
}

CLI::Option* add_field(CLI::App& command, const nn::Field& field, std::optional<double>& value) {
  check(value.has_value(), "options", field.name, " has no value yet");
  return add_field(command, field, *value);
}

void check_heads(const nn::LayerOptions& layer) {
  if (layer.d_model % layer.num_heads != 0)
    usage_error("--heads",
                std::to_string(layer.num_heads) + " does not divide --d-model, " + std::to_string(layer.d_model));
}

void take_kept(const std::vector<CLI::Option*>& options, const Metadata& metadata, const std::string& path) {
  const auto found = metadata.find(options_key);
  if (found == metadata.end()) return;
  const Json all = parse_json_object(found->second, "load " + path);
  Json values = Json::object();
  for (const CLI::Option* option : options) {
    const std::string name = typed_name(option).substr(2);
    if (all.contains(name)) values[name] = all.at(name);
  }
  take_values(options, json_text(values), "load " + path, [] {});
}

}  // namespace orrery
