// Chapter 9. The files of `orrery lm train --save FILE`: the best model so far, and the state of the training.
//
//   FILE          the model, with its configuration and alphabet: `orrery lm sample --load FILE`
//   FILE.resume   the state of an unfinished training: `orrery lm train --resume FILE`
// Each is replaced as a whole (core/files/file.h), so a crash at any moment leaves the previous version. FILE.resume
// has the recipe, the parameters, the optimiser's state, the positions of the random numbers and the losses. With the
// same text, the resumed training gives the same bits as an uninterrupted one. It is about five times as large as FILE.
// Serves: nn/models/gpt.h
#pragma once

#include <optional>
#include <string>

#include "apps/lm/training.h"
#include "apps/training/model_file.h"

namespace orrery {

/// How a training was started.
struct LmOrigin {
  LmRecipe recipe;
  std::string text;       ///< the file, as an absolute path
  u32 text_checksum = 0;  ///< CRC32C of its bytes
  int tiles = 1;          ///< of `set_least_tiles`
  std::string kernel;     ///< the kernel of OpenBLAS: the bits depend on it
};

/// The metadata key of a saved model's alphabet.
inline constexpr std::string_view alphabet_key = "alphabet";

/// A saved model and the alphabet of its tokens.
struct LmModel {
  Alphabet alphabet;
  nn::Gpt model;
};
/// Reads FILE. Errors: those of `nn::load_gpt`; a model that `orrery lm` did not save.
LmModel load_lm(const std::string& path);

/// The two files of one training.
class LmFiles {
 public:
  /// If `path` is "", nothing is saved.
  explicit LmFiles(const std::string& path) : file_("lm", path) {}

  bool used() const { return file_.used(); }
  const std::string& model() const { return file_.path(); }
  std::string resume() const { return file_.resume(); }

  /// Locks the files for a new training. Errors: those of ModelFile's `claim` and `check_free`; `text` is one of the
  /// files to be written.
  void begin(const std::string& text, bool overwrite);
  /// Locks the files for a training to resume. Errors: those of ModelFile's `claim`.
  void go_on() { file_.claim("--resume"); }
  /// Error, before a training starts: not enough disk space for a model of `parameters` numbers and its state.
  void check_room(i64 parameters) const;

  /// Writes the state of the training and, if the last estimate was the lowest, the model. Returns false if that
  /// failed; `problem` then says why.
  bool keep(const LmOrigin& origin, LmTraining& training);
  /// Writes the model as it is. The state of a finished training is removed. Returns false as above.
  bool end(LmTraining& training, bool finished);
  const std::string& problem() const { return file_.problem(); }
  /// Error: the last call of `keep` or `end` failed.
  void check_kept() const { file_.check_kept(); }

 private:
  void save_model(LmTraining& training) const;

  ModelFile file_;
};

/// An unfinished training.
struct LmCheckpoint {
  LmOrigin origin;
  LmState state;
};
/// Reads FILE.resume. Errors: the file does not exist, is damaged, or describes a model far larger than itself.
LmCheckpoint read_checkpoint(const LmFiles& files);

}  // namespace orrery
