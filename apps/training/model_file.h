// Chapter 9. The file in which a training keeps its model: taken at the start, written at the end, lost by no accident.
//
//   ModelFile file("toy", options.save);
//   file.claim("--save");                  // one training at a time: FILE.lock says whose it is
//   file.check_free(options.overwrite);    // a model that stands there is not replaced unasked
//   file.check_room(bytes);                // and what will be written has a place
// Whatever can go wrong with the file is so said before hours of training, and once more after them. A training that
// fails on its way still ends as others do: `end_training` judges and keeps what there is.
// Serves: apps/toy/toy.cpp
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "core/dtype.h"
#include "core/files/file.h"

namespace orrery {

/// The files of one training. Nothing is kept if their name is "".
class ModelFile {
 public:
  /// Errors begin with `program`, such as "toy".
  ModelFile(std::string program, std::string path) : program_(std::move(program)), path_(std::move(path)) {}

  bool used() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  /// Where an unfinished training is kept, if the program keeps any.
  std::string resume() const { return path_ + ".resume"; }
  std::string lock() const { return path_ + ".lock"; }

  /// Makes it this process's own until the end. Errors: `option`, which gave the name, names a file that cannot be
  /// written; another training has it, saying which.
  void claim(const std::string& option);
  /// Error: what stands there is no model, or is a model or an unfinished training and `overwrite` does not allow to
  /// begin anew.
  void check_free(bool overwrite) const;
  /// Error: a model of `model` bytes, and where `unfinished` is not 0 a training of so many, written again and again,
  /// have no place there.
  void check_room(i64 model, i64 unfinished = 0) const;

  /// Calls `save`, which writes; false if that failed, and `problem` then says why.
  bool keep(const std::function<void()>& save);
  const std::string& problem() const { return problem_; }
  /// Error: `keep` failed last.
  void check_kept() const;

 private:
  std::string program_, path_, problem_;
  std::optional<FileLock> lock_;
};

/// Ends a training: `report` judges it and prints, `save` keeps it. Both are tried, whatever fails; then the first
/// failure is thrown: that of the training itself, if there is one, that of `report`, that of `save`.
void end_training(std::exception_ptr failure, const std::function<void()>& report, const std::function<void()>& save);

/// Calls `steps` and returns what it threw; nothing if all went well.
std::exception_ptr failure_of(const std::function<void()>& steps);

}  // namespace orrery
