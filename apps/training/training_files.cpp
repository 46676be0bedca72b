// Chapter 9. Locking a file for a training, and saving a model in it.
//
// The files of a training: what is written, and what is checked when it is read.
#include "apps/training/training_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "apps/program/option_file.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/files/safetensors_header.h"
#include "core/products/blas.h"
#include "core/products/gemm.h"
#include "core/products/precision.h"
#include "nn/models/config_json.h"

namespace orrery {
namespace {

// The command line of this process, as typed in a shell; a long one is cut off.
std::string own_command() {
  constexpr size_t enough = 200;
  std::ifstream arguments("/proc/self/cmdline", std::ios::binary);
  std::string command;
  for (std::string argument; std::getline(arguments, argument, '\0');)
    command += (command.empty() ? "" : " ") + shell_quoted(argument);
  if (command.size() > enough) command.replace(enough, command.npos, " ...");
  return command.empty() ? "orrery" : command;
}

// Whether nothing would be lost by writing there.
bool is_free(const std::string& path) {
  std::error_code unknown;
  return !std::filesystem::exists(path, unknown) || std::filesystem::file_size(path, unknown) == 0;
}

// Error: the file is not a model. Such a file is never overwritten.
void check_is_model(const std::string& program, const std::string& path) {
  if (is_free(path)) return;
  check(holds_model(path), program, "--save ", path, " is a file that holds no model; name another, or remove it");
}

// The endings of the files beside a model. What one training writes must not be what another one needs.
constexpr std::string_view resume_end = ".resume", lock_end = ".lock", temporary_end = ".tmp";

// Error: `path` is the name of a file beside another model.
void check_own_name(const std::string& program, const std::string& option, const std::string& path) {
  for (const std::string_view end : {resume_end, lock_end, temporary_end})
    check(!path.ends_with(end), program, option, ' ', path, ": names that end in ", end,
          " are those of files beside a model; name another, such as ",
          shell_quoted(path.substr(0, path.size() - std::min(path.size(), end.size()))));
}

// What `replace_file` writes first.
std::string temporary(const std::string& path) { return path + std::string(temporary_end); }

}  // namespace

std::string ModelFile::resume() const { return path_ + std::string(resume_end); }

std::string ModelFile::lock() const { return path_ + std::string(lock_end); }

void ModelFile::claim(const std::string& option) {
  if (!used()) return;
  check_own_name(program_, option, path_);
  check_can_write(program_, option, path_);
  check_can_write(program_, option, temporary(resume()));  // the longest name
  lock_.emplace(lock(), own_command());
  check(lock_->held(), program_, "another training saves its model in ", path_, ": ", lock_->holder());
}

bool ModelFile::writes(const std::string& path) const {
  if (!used()) return false;
  const std::array written{path_, temporary(path_), resume(), temporary(resume()), lock()};
  return std::any_of(written.begin(), written.end(), [&](const std::string& own) { return is_same_file(own, path); });
}

void ModelFile::check_free(bool overwrite) const {
  if (!used()) return;
  for (const std::string& file : {path_, resume()}) check_is_model(program_, file);
  if (overwrite) return;
  std::error_code unknown;
  check(!std::filesystem::exists(resume(), unknown), program_, resume(),
        " holds an unfinished training: continue it with --resume ", shell_quoted(path_),
        ", or start again with --overwrite");
  check(is_free(path_), program_, path_, " already holds a model: --overwrite replaces it, another name keeps both");
}

void ModelFile::check_room(i64 model, i64 unfinished) const {
  if (!used()) return;
  const std::array files{PlannedFile{path_, static_cast<u64>(model)},
                         PlannedFile{resume(), static_cast<u64>(unfinished)}};
  orrery::check_room(std::span(files).first(unfinished > 0 ? 2 : 1), unfinished > 0);
}

bool ModelFile::keep(const std::function<void()>& save) {
  problem_.clear();
  if (!used()) return true;
  try {
    save();
  } catch (const Error& error) { problem_ = error.what(); } catch (const std::bad_alloc&) {
    problem_ = out_of_memory;
  }
  return problem_.empty();
}

void ModelFile::check_kept() const { check(problem_.empty(), program_, "the model is not saved: ", problem_); }

const std::string& model_entry(const Metadata& metadata, std::string_view key, const std::string& program,
                               const std::string& path) {
  const auto found = metadata.find(std::string(key));
  check(found != metadata.end(), program, path, " was not saved by orrery ", program, " (it has no ", key,
        "); orrery inspect says what it is");
  return found->second;
}

namespace {

const std::string recipe_key = "recipe", standing_key = "standing", program_key = "program";

// What else the bits of products depend on, if they are computed so.
std::string kernel_of(const ProductOptions& products) { return products.bf16 ? bf16_arithmetic() : blas_info().kernel; }

// Everything that is neither a tensor nor in the recipe. Before the first evaluation, the best loss is null.
std::string standing_of(const TrainingState& state, i64 seed) {
  return ObjectText()
      .add("seed", seed)
      .add("products", products_name(uses_blas()))
      .add("precision", precision_name(uses_bf16()))
      .add("kernel", kernel_of({uses_blas(), uses_bf16()}))
      .add("steps_done", state.steps_done)
      .add("best_step", state.best_step)
      .add("best_loss", state.best_step > 0 ? std::optional(state.best_score) : std::nullopt)
      .add("evaluations_since_best", state.evaluations_since_best)
      .add("positions", state.positions)
      .text();
}

// Bytes of the texts that every file holds besides the program's own.
constexpr u64 recipe_and_standing = 16'000;  // recipe, options and standing together, at most
constexpr u64 checksum_text = 9;             // the checksum of one tensor

void read_standing(const std::string& text, UnfinishedTraining& to) {
  constexpr std::string_view operation = "training standing";
  constexpr i64 any = std::numeric_limits<i64>::max();
  const Json json = parse_json_object(text, operation);
  nn::config_json::Reader read(operation, json, nn::config_json::Fields::all);
  TrainingState& state = to.state;
  read("seed", to.recipe.seed, 0, any);
  const auto named = [&](const std::string& field, const char* (*name_of)(bool), std::string name = "") {
    nn::config_json::Reader(operation, json,
                            name.empty() ? nn::config_json::Fields::all : nn::config_json::Fields::any)(field, name);
    check(name == name_of(true) || name == name_of(false), operation, field, " cannot be ", harmless(name));
    return name == name_of(true);
  };
  to.products.by_blas = named("products", products_name);
  to.products.bf16 = named("precision", precision_name, precision_name(false));  // states before it had none
  read("kernel", to.kernel);
  read("steps_done", state.steps_done, 0, to.recipe.steps);
  read("best_step", state.best_step, 0, state.steps_done);
  if (state.best_step > 0) read("best_loss", state.best_score);
  read("evaluations_since_best", state.evaluations_since_best, 0, state.steps_done);
  read("positions", state.positions, 0, any);
}

}  // namespace

void TrainingFiles::begin(bool overwrite) {
  if (!used()) return;
  file_.claim("--save");
  file_.check_free(overwrite);
}

void TrainingFiles::go_on() {
  file_.claim("--resume");
  resume_is_ours_ = true;
}

void TrainingFiles::check_room(const TrainingRecipe& recipe, i64 parameters) const {
  const i64 model = parameters * bytes_of(f32), losses = recipe.steps * bytes_of(f64);  // one loss for each step
  file_.check_room(model, numbers_for_each_parameter(recipe) * model + losses);
}

void TrainingFiles::check_texts(const Trainer& trainer, const SavedParts& parts) const {
  if (!used()) return;
  u64 state_bytes = 0, all_texts = recipe_and_standing;
  for (const auto& [name, tensor] : trainer.state().tensors) {
    state_bytes += static_cast<u64>(tensor.count() * bytes_of(tensor.dtype()));
    all_texts += 2 * name.size() + checksum_text;
  }
  const u64 bytes = std::min(parts.model_bytes, state_bytes);
  for (const auto& [key, text] : parts.origin) {
    const u64 length = json_text(text).size() - 2;  // without quotes
    all_texts += length;
    check(all_texts <= longest_text(bytes), program_, "--save ", model(),
          ": the model is too small to be saved with its ", key, ", ", length, " bytes beside ", bytes,
          " of parameters; use a larger model, or fewer tokens or files");
  }
}

void TrainingFiles::write_state(Trainer& trainer, const SavedParts& parts) {
  check(!trainer.ended(), program_, "the parameters to save are no longer those to train on with");
  const TrainingState state = trainer.state();
  Metadata metadata = parts.origin;
  metadata[program_key] = program_;
  metadata[recipe_key] = to_json(trainer.recipe());
  metadata[standing_key] = standing_of(state, trainer.recipe().seed);
  write_safetensors(resume(), state.tensors, metadata);
  resume_is_ours_ = true;
}

bool TrainingFiles::keep(Trainer& trainer, const SavedParts& parts) {
  return file_.keep([&] {
    // The state comes first. Otherwise a program that is killed between the two would leave, in place of an older
    // unfinished training, the new model beside the old state, and --resume would continue the old one.
    write_state(trainer, parts);
    // A training that is stopped before its first evaluation also saves a model.
    if (trainer.best_step() == 0 || trainer.best_step() != best_kept_) {
      trainer.with_best([&] { parts.save_model(model()); });
      best_kept_ = trainer.best_step();
    }
  });
}

bool TrainingFiles::older_state_stands() const {
  std::error_code unknown;  // if the system cannot tell whether it is there, it counts as there
  return used() && !resume_is_ours_ &&
         std::filesystem::status(resume(), unknown).type() != std::filesystem::file_type::not_found;
}

void TrainingFiles::take_place(Trainer& trainer, const SavedParts& parts) {
  if (!older_state_stands()) return;
  check(file_.keep([&] { write_state(trainer, parts); }), program_,
        "the model is not saved, and the older training stays: ", file_.problem());
}

bool TrainingFiles::end(const SavedParts& parts, bool finished) {
  left_.clear();
  const bool saved = file_.keep([&] {
    check(!older_state_stands(), program_, "the state in ", resume(), " is of an older training, or may be");
    parts.save_model(model());
  });
  if (!saved) return false;
  try {
    if (used() && resume_is_ours_ && finished) remove_file(resume());
  } catch (const Error& error) { left_ = error.what(); } catch (const std::bad_alloc&) {
    left_ = out_of_memory;
  }
  return true;
}

void TrainingFiles::check_kept() const {
  file_.check_kept();
  check(left_.empty(), program_, "the model is saved, but ", left_);
}

UnfinishedTraining read_unfinished(const std::string& program, const TrainingFiles& files) {
  const std::string path = files.resume();
  std::error_code unknown;
  check(std::filesystem::exists(path, unknown), program, "there is no ", path, ": the training of ", files.model(),
        " is finished, or was never started");
  TensorFile file = read_safetensors(path);
  UnfinishedTraining result;
  result.path = path;
  result.metadata = std::move(file.metadata);
  const std::string& trained_by = entry_of(result, program, program_key);
  check(trained_by == program, program, path, " is a training of orrery ", trained_by);
  const std::string &recipe = entry_of(result, program, recipe_key),
                    &standing = entry_of(result, program, standing_key);
  within("load " + path, [&] {
    result.recipe = training_recipe(recipe);
    read_standing(standing, result);
    const auto options = result.metadata.find(options_key);  // which the log gets
    if (options != result.metadata.end() && !options->second.empty()) parse_json_object(options->second, "options");
  });
  result.state.tensors = std::move(file.tensors);
  return result;
}

void check_is_finished(const std::string& program, const std::string& path, const Metadata& metadata) {
  check(!metadata.contains(standing_key), program, path,
        " is an unfinished training; its model is in the file without .resume");
  const auto saved_by = metadata.find(std::string(task_key));
  check(saved_by == metadata.end() || saved_by->second == program, program, path, " was not saved by orrery ", program,
        ", but by orrery ", saved_by == metadata.end() ? "" : printable(saved_by->second));
}

const std::string& entry_of(const UnfinishedTraining& training, const std::string& program, const std::string& key) {
  const auto found = training.metadata.find(key);
  check(found != training.metadata.end(), program, training.path, " is not an unfinished training (it has no ", key,
        ')');
  return found->second;
}

void compute_as(const UnfinishedTraining& training) {
  const ProductOptions& products = training.products;
  use_products(products);
  if ((products.by_blas || products.bf16) && training.kernel != kernel_of(products))
    std::cerr << "warning: this training began with " << (products.bf16 ? "bf16 by " : "OpenBLAS's kernel ")
              << harmless(training.kernel) << "; its bits will not be those of an uninterrupted one\n";
}

}  // namespace orrery
