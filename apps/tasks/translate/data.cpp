// Chapter 9. Reading the text of a translator's training.
#include "apps/tasks/translate/data.h"

#include "core/error.h"

namespace orrery::translate {

TranslationData translation_data(const TranslationFiles& files, const TranslationRecipe& recipe,
                                 const Vocabulary* vocabulary,
                                 const std::function<void(const std::string& what)>& tell) {
  recipe.validate();
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
