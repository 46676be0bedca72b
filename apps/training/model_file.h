// Chapter 9. The file in which a training saves its model: checked and locked at the start, written at each best
// evaluation and at the end.
//
//   ModelFile file("toy", options.save);
//   file.claim("--save");                  // one training at a time: FILE.lock names it
//   file.check_free(options.overwrite);    // an existing model is replaced only with --overwrite
//   file.check_room(bytes);                // the disk has enough space
// Problems with the file are reported before the training starts and again at its end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/files/file.h"
#include "core/files/safetensors.h"

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

}  // namespace orrery
