// Chapter 9. What `orrery lm train --save FILE` keeps: the best model so far, and what it takes to go on.
//
//   FILE          the model, with its configuration and alphabet: `orrery lm sample --load FILE`
//   FILE.resume   where the training stands, as long as it is unfinished: `orrery lm train --resume FILE`
// Both are replaced as wholes (core/files/file.h), so that a crash at any moment leaves the last ones. The second has
// the recipe, the parameters, the optimiser's state, the positions of the random numbers and the losses: with the same
// text the rest of the training has the bits that it would have had. It is about five times as large as the first.
// Serves: nn/models/gpt.h
#pragma once

#include <optional>
#include <string>

#include "apps/lm/training.h"
#include "apps/training/model_file.h"

namespace orrery {

/// What a training was begun with.
struct LmOrigin {
  LmRecipe recipe;
  std::string text;       ///< the file, as an absolute path
  u32 text_checksum = 0;  ///< CRC32C of its bytes
  int tiles = 1;          ///< of `set_least_tiles`
  std::string kernel;     ///< OpenBLAS's: the bits depend on it
};

/// Where in the metadata of a saved model its alphabet stands.
inline constexpr std::string_view alphabet_key = "alphabet";

/// A saved model and the alphabet of its tokens.
struct LmModel {
  Alphabet alphabet;
  nn::Gpt model;
};
/// What FILE holds. Errors: those of `nn::load_gpt`; a model that `orrery lm` did not save.
LmModel load_lm(const std::string& path);

/// The two files of one training.
class LmFiles {
 public:
  /// Nothing is kept if `path` is "".
  explicit LmFiles(const std::string& path) : file_("lm", path) {}

  bool used() const { return file_.used(); }
  const std::string& model() const { return file_.path(); }
  std::string resume() const { return file_.resume(); }

  /// Takes the files for a new training. Errors: those of ModelFile's `claim` and `check_free`; `text` is a file that
  /// would be overwritten.
  void begin(const std::string& text, bool overwrite);
  /// Takes the files for a training that goes on. Errors: those of ModelFile's `claim`.
  void go_on() { file_.claim("--resume"); }
  /// Error, before a training begins or goes on: a model of `parameters` numbers and what it takes to go on have no
  /// place there.
  void check_room(i64 parameters) const;

  /// The best model, if the last estimate was the lowest, and the training's state. False if they cannot be written:
  /// `problem` then says why.
  bool keep(const LmOrigin& origin, LmTraining& training);
  /// The model as it is; of a finished training the state is removed. False as above.
  bool end(LmTraining& training, bool finished);
  const std::string& problem() const { return file_.problem(); }
  /// Error: the last of them failed.
  void check_kept() const { file_.check_kept(); }

 private:
  void save_model(LmTraining& training) const;

  ModelFile file_;
};

/// A training to go on with.
struct LmCheckpoint {
  LmOrigin origin;
  LmState state;
};
/// What FILE.resume holds. Errors: there is none; it is damaged; it describes a model far larger than itself.
LmCheckpoint read_checkpoint(const LmFiles& files);

}  // namespace orrery
