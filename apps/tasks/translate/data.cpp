// Chapter 9. Reading the text of a translator's training.
#include "apps/tasks/translate/data.h"

#include <filesystem>

#include "core/error.h"
#include "core/tensor.h"

namespace orrery::translate {
namespace {

// Error, before they are read: the texts do not fit into memory with each line as it is in the file and in one
// spelling, which later become tokens. A file that is not there counts nothing: reading it is an error.
void check_memory_for(const TranslationFiles& files) {
  i64 bytes = 0;
  for (const std::string& path : {files.source, files.target, files.valid_source, files.valid_target}) {
    std::error_code not_there;
    const auto size = std::filesystem::file_size(path, not_there);
    if (!not_there) bytes += 2 * static_cast<i64>(size);
  }
  within("translate: the text", [&] { Tensor::empty({bytes / bytes_of(f32)}); });
}

}  // namespace

TranslationData translation_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                                 const Vocabulary* vocabulary,
                                 const std::function<void(const std::string& what)>& tell) {
  recipe.validate();
  check_memory_for(files);
  const auto begin = [&](const std::string& what) {
    if (tell) tell(what);
  };
  begin("reading " + files.source + " and " + files.target);
  const Spelling spelling = !vocabulary || vocabulary->is_normalized() ? Spelling::normalized : Spelling::as_it_is;
  LinePairs all = read_pairs(files.source, files.target, spelling);
  std::vector<u32> checksums{all.source_checksum, all.target_checksum};
  SplitPairs held;
  if (files.hold_out()) {
    held = hold_out(all);
  } else {
    held.validation = read_pairs(files.valid_source, files.valid_target, spelling);
    checksums.insert(checksums.end(), {held.validation.source_checksum, held.validation.target_checksum});
    held.training = std::move(all);
  }
  const auto new_vocabulary = [&] {
    const std::vector<std::string_view> lines = lines_to_learn(held.training, recipe.segmented, recipe.most_tokens);
    if (!recipe.segmented) begin("SentencePiece learns at most " + std::to_string(recipe.vocabulary) + " tokens");
    return recipe.segmented ? Vocabulary::of_segmented(lines) : Vocabulary::of_text(lines, recipe.vocabulary);
  };
  const Vocabulary used = vocabulary ? *vocabulary : new_vocabulary();
  const auto corpus = [&](const std::string& what, const LinePairs& pairs) {
    return within(what, [&] { return corpus_of(pairs, used, recipe.most_tokens); });
  };
  begin("cutting " + std::to_string(held.training.size() + held.validation.size()) + " pairs into tokens");
  TranslationData data{.vocabulary = used,
                       .training = corpus("pairs to train with", held.training),
                       .validation = corpus("pairs to validate with", held.validation),
                       .first_source = {},
                       .checksums = checksums};
  data.first_source = used.text(data.validation.source[0]);
  return data;
}

}  // namespace orrery::translate
