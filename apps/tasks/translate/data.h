// Chapter 9. The text of a translator's training: files of sentence pairs as tokens.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/data/corpus.h"
#include "apps/tasks/translate/recipe.h"

namespace orrery::translate {

/// The files of a training. Without files to validate with, a part of the pairs is held out (corpus.h).
struct TranslationFiles {
  std::string source, target, valid_source{}, valid_target{};

  bool hold_out() const { return valid_source.empty(); }
};

/// The text of a training as tokens.
struct TranslationData {
  Vocabulary vocabulary;
  Corpus training, validation;
  std::string first_source;    ///< the first source sentence to validate with, made of its tokens again
  std::vector<u32> checksums;  ///< CRC32C of each file
};
/// Reads the files. The vocabulary is made of the training pairs, unless it is given. Before each part of the work that
/// may take long, `tell` is called with what begins. Errors: a text that does not fit into memory (`limit_memory`);
/// those of the recipe, `read_pairs`, `hold_out`, `Vocabulary` and `corpus_of`.
TranslationData translation_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                                 const Vocabulary* vocabulary = nullptr,
                                 const std::function<void(const std::string& what)>& tell = {});

}  // namespace orrery::translate
