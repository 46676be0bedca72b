// Chapter 9. The file in which a training saves its model: checked and locked at the start, written at each best
// evaluation and at the end.
//
//   ModelFile file("toy", options.save);
//   file.claim("--save");                  // one training at a time: FILE.lock names it
//   file.check_free(options.overwrite);    // an existing model is replaced only with --overwrite
//   file.check_room(bytes);                // the disk has enough space
// Problems with the file are reported before the training starts and again at its end.
//
// The files of a training with --save FILE: the best model so far, and the state to resume from.
//
//   FILE          the model, as the program writes it
//   FILE.resume   the state of an unfinished training, for --resume FILE
// Each is replaced as a whole (core/files/file.h), so a crash at any moment leaves the previous version. With the same
// data, the resumed training gives the same bits as an uninterrupted one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "apps/training/trainer.h"
#include "core/dtype.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"
#include "core/products/precision.h"

namespace orrery {

/// The `problem` when memory ran out. A std::string keeps so short a text without allocating memory.
inline constexpr std::string_view out_of_memory = "out of memory";

/// The files of one training. If the path is "", nothing is saved.
class ModelFile {
 public:
  /// Errors begin with `program`, such as "toy".
  ModelFile(std::string program, std::string path) : program_(std::move(program)), path_(std::move(path)) {}

  bool used() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  /// The file of an unfinished training, for programs that can resume one.
  std::string resume() const;
  std::string lock() const;

  /// Whether `path`, by whatever name, is one of the files that a training writes here.
  bool writes(const std::string& path) const;
  /// Locks the files for this process. Errors: the file named by `option` cannot be written, or has a name that ends
  /// like those of the files beside a model; another training has locked it (the message says which).
  void claim(const std::string& option);
  /// Errors: the file exists and is not a model; there is a model or an unfinished training, and `overwrite` is false.
  void check_free(bool overwrite) const;
  /// Error: not enough disk space for a model of `model` bytes and, if not 0, an unfinished training of `unfinished`
  /// bytes.
  void check_room(i64 model, i64 unfinished = 0) const;

  /// Calls `save`, which writes the file. Returns false if that failed; `problem` then says why.
  bool keep(const std::function<void()>& save);
  const std::string& problem() const { return problem_; }
  /// Error: the last call of `keep` failed.
  void check_kept() const;

 private:
  std::string program_, path_, problem_;
  std::optional<FileLock> lock_;
};

/// What stands under `key` in the metadata of `path`. Error: there is no such entry, so it is no model of `program`.
const std::string& model_entry(const Metadata& metadata, std::string_view key, const std::string& program,
                               const std::string& path);

/// What a program adds to the files of its training.
struct SavedParts {
  /// Writes the model with the parameters it has now.
  std::function<void(const std::string& path)> save_model;
  /// Metadata of FILE.resume: how the program builds the task again. The keys "program", "recipe" and
  /// "standing" are taken.
  Metadata origin{};
  u64 model_bytes = 0;  ///< of the elements that `save_model` writes
};

class TrainingFiles {
 public:
  /// Errors begin with `program`. If `path` is "", nothing is saved.
  TrainingFiles(const std::string& program, const std::string& path) : program_(program), file_(program, path) {}

  /// The program's name, with which errors begin.
  const std::string& program() const { return program_; }
  bool used() const { return file_.used(); }
  const std::string& model() const { return file_.path(); }
  std::string resume() const { return file_.resume(); }
  /// Whether `path`, by whatever name, is one of these files.
  bool writes(const std::string& path) const { return file_.writes(path); }

  /// Locks the files for a new training. Errors: those of ModelFile's `claim` and `check_free`.
  void begin(bool overwrite);
  /// Locks the files for a training to resume. Errors: those of ModelFile's `claim`.
  void go_on();
  /// Error, before a training starts: not enough disk space for a model of `parameters` numbers and its state.
  void check_room(const TrainingRecipe& recipe, i64 parameters) const;

  /// Error, before a training starts: the texts of `parts`, such as the vocabulary, are too long for files with so few
  /// parameters (`longest_text`).
  void check_texts(const Trainer& trainer, const SavedParts& parts) const;

  /// Writes the state, then the model unless the best one already stands there. Returns false if that failed; `problem`
  /// then says why.
  bool keep(Trainer& trainer, const SavedParts& parts);
  /// Call it before the end of a training that may have kept nothing. If the state of an older training is there, this
  /// training's replaces it: otherwise --resume would find the new model, but continue the older training. Error: the
  /// state could not be written; the older model and its state then stay.
  void take_place(Trainer& trainer, const SavedParts& parts);
  /// Writes the model as it is; then the state of a finished training is removed. Returns false as `keep` does, also if
  /// the state of an older training is still there.
  bool end(const SavedParts& parts, bool finished);
  const std::string& problem() const { return file_.problem(); }
  /// Errors: the last call of `keep` or `end` failed; the state of a finished training could not be removed.
  void check_kept() const;

 private:
  void write_state(Trainer& trainer, const SavedParts& parts);
  bool older_state_stands() const;

  std::string program_, left_;  // why the state of a finished training is still there; "" if it is not
  ModelFile file_;
  i64 best_kept_ = 0;            // the step of the best model that was written; 0: none
  bool resume_is_ours_ = false;  // FILE.resume is of this training, not of one that --overwrite replaces
};

/// An unfinished training, as FILE.resume has it.
struct UnfinishedTraining {
  std::string path{};  ///< of FILE.resume
  TrainingRecipe recipe;
  TrainingState state;
  ProductOptions products{};
  std::string kernel;  ///< of OpenBLAS, or of bf16: the bits depend on it if products are computed so
  Metadata metadata;   ///< the program's own
};
/// Reads FILE.resume. Errors: the file does not exist, is damaged, or is not an unfinished training of `program`.
UnfinishedTraining read_unfinished(const std::string& program, const TrainingFiles& files);
/// The metadata key of the program whose training saved a model, where several save models of one kind.
inline constexpr std::string_view task_key = "task";
/// Error: the file `path` with this metadata is an unfinished training, not a model, or it is the model of another
/// program, as far as it says whose it is.
void check_is_finished(const std::string& program, const std::string& path, const Metadata& metadata);
/// What the program kept under `key`. Error: there is no such entry.
const std::string& entry_of(const UnfinishedTraining& training, const std::string& program, const std::string& key);
/// Lets products be computed as in the training, and warns if OpenBLAS or bf16 then uses another kernel here, whose
/// bits differ.
void compute_as(const UnfinishedTraining& training);

}  // namespace orrery
