// Chapter 9. Locking a file for a training, and saving a model in it.
#include "apps/training/model_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <new>
#include <span>
#include <string_view>

#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "core/error.h"

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

}  // namespace orrery
