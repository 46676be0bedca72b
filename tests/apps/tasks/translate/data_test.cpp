// Chapter 9. Tests of the text of a translator's training: what a vocabulary learns from, and what is said meanwhile.
#include "apps/tasks/translate/data.h"

#include <doctest/doctest.h>

#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::translate;

TEST_CASE("sentencepiece learns from the training pairs alone; the same files give the same data") {
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.segmented = false;
  recipe.vocabulary = 60;
  recipe.most_tokens = 60;
  recipe.batch_tokens = 100;
  const TranslationData data = small::animal_data(recipe), again = small::animal_data(recipe);
  CHECK_FALSE(data.vocabulary.is_segmented());
  CHECK(data.vocabulary.to_json() == again.vocabulary.to_json());
  CHECK(data.checksums == again.checksums);
  CHECK(data.checksums.size() == 2);
  CHECK(data.training.size() + data.validation.size() == 20);
  CHECK(data.first_source.starts_with("the "));
}

TEST_CASE("a line that is far too long changes nothing but the count of what is left out") {
  const TemporaryFolder folder;
  const small::AnimalText text = small::animal_text();
  set_contents(folder / "en", text.english);
  set_contents(folder / "de", text.german);
  // SentencePiece alone would take minutes for this line.
  set_contents(folder / "longer.en", text.english + small::repeated("a ", 300'000) + "\n");
  set_contents(folder / "longer.de", text.german + "eins\n");
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.segmented = false;
  recipe.vocabulary = 60;
  recipe.most_tokens = 60;
  recipe.batch_tokens = 100;
  const TranslationFiles valid{
      .source = folder / "en", .target = folder / "de", .valid_source = folder / "en", .valid_target = folder / "de"};
  TranslationFiles longer = valid;
  longer.source = folder / "longer.en";
  longer.target = folder / "longer.de";
  const TranslationData data = translation_data(valid, recipe), with_line = translation_data(longer, recipe);
  CHECK(with_line.vocabulary.to_json() == data.vocabulary.to_json());
  CHECK(with_line.training.size() == data.training.size());
  CHECK(with_line.training.counts.text(60) == "20 of 21 pairs (left out: 1 longer than 60 tokens)");
}

TEST_CASE("what takes long is told before it begins") {
  const TemporaryFolder folder;
  const small::AnimalText text = small::animal_text();
  set_contents(folder / "en", text.english);
  set_contents(folder / "de", text.german);
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.segmented = false;
  recipe.vocabulary = 60;
  recipe.most_tokens = 60;
  recipe.batch_tokens = 100;
  std::string told;
  translation_data({.source = folder / "en", .target = folder / "de"}, recipe, nullptr,
                   [&](const std::string& what) { told += what + '\n'; });
  CHECK(told == "reading " + (folder / "en") + " and " + (folder / "de") +
                    "\nSentencePiece learns at most 60 tokens\ncutting 20 pairs into tokens\n");
}
