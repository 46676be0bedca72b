// Chapter 9. What `orrery lm` adds to the files of a training (apps/training/training_files.h).
//
// The model's file says what its tokens are, and has their alphabet or vocabulary: `orrery lm sample --load FILE`. The
// file of an unfinished training also has the names of the texts and their checksum.
#pragma once

#include <string>

#include "apps/tasks/lm/training.h"
#include "apps/training/training_files.h"

namespace orrery {

/// How a training was started.
struct LmOrigin {
  LmRecipe recipe{};
  std::string options{};  ///< those that decide what is trained, as --config takes them
  TextFiles texts{};
  u32 text_checksum = 0, validation_checksum = 0;  ///< CRC32C of the bytes of each; 0 without a file to validate with
  Tokenizer tokenizer;
};

/// What the files of a training hold besides its state, if it was started as `origin` says.
SavedParts saved_parts(const LmOrigin& origin, LmTask& task);
/// How the training in a file was started. Errors: the file is not of `orrery lm`, or describes a model far larger than
/// itself.
LmOrigin origin_of(const UnfinishedTraining& training);

/// A saved model and its tokens.
struct LmModel {
  Tokenizer tokenizer;
  nn::Gpt model;
};
/// A model to read, and what its file may not say if another program wrote it.
struct LmSource {
  std::string path;
  i64 heads = 0;           ///< 0: what the file says
  std::string characters;  ///< the name of a text whose characters are the tokens; "": what the file says
};
/// Reads a model. Errors: those of `nn::load_gpt`; tokens that neither the file nor `characters` says, or both; as many
/// tokens as the model does not have.
LmModel load_lm(const LmSource& source);

}  // namespace orrery
