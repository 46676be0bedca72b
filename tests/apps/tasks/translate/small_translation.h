// Chapter 9. What the tests of translators share: invented sentences, and a model that learns from them in a moment.
#pragma once

#include "apps/tasks/translate/model.h"
#include "apps/tasks/translate/task.h"
#include "core/tensor_ops.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/temporary_folder.h"

namespace orrery::small {

/// Animals that see one another, in English and German: every pair of different ones.
struct AnimalText {
  std::string english, german;
};
inline AnimalText animal_text() {
  using Names = std::vector<std::string>;
  const Names english{"dog", "cat", "child", "woman", "bird"};
  const Names subject{"der hund", "die katze", "das kind", "die frau", "der vogel"};
  const Names object{"den hund", "die katze", "das kind", "die frau", "den vogel"};
  AnimalText text;
  for (size_t i = 0; i < english.size(); ++i)
    for (size_t j = 0; j < english.size(); ++j) {
      if (i == j) continue;
      const std::string big = (i + j) % 2 == 0 ? "not " : "", nicht = big.empty() ? "" : " nicht";
      text.english += "the " + english[i] + " does " + big + "see the " + english[j] + " .\n";
      text.german += subject[i] + " sieht " + object[j] + nicht + " .\n";
    }
  return text;
}

/// Odd sizes, so that no tile or chunk comes out even; dropout is on.
inline translate::TranslationRecipe small_translation_recipe() {
  translate::TranslationRecipe recipe;
  recipe.model.layer = {.d_model = 15, .num_heads = 3, .d_ff = 37, .dropout = 0.1};
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.segmented = true;
  recipe.batch_tokens = 40;
  recipe.most_tokens = 20;
  recipe.micro_batches = 2;
  recipe.steps = 12;
  recipe.warmup = 4;
  recipe.evaluate_every = 5;
  recipe.average_last = 2;
  return recipe;
}

inline translate::TranslationData animal_data(const translate::TranslationRecipe& recipe) {
  const TemporaryFolder folder;
  const AnimalText text = animal_text();
  set_contents(folder / "en", text.english);
  set_contents(folder / "de", text.german);
  return translate::translation_data({.source = folder / "en", .target = folder / "de"}, recipe);
}

/// A model that learns them.
struct AnimalTraining {
  explicit AnimalTraining(const translate::TranslationRecipe& how = small_translation_recipe())
      : recipe(how), data(animal_data(recipe)), task(recipe, data), trainer(task) {}
  void train(i64 until) { train_until(trainer, until); }
  translate::TranslationRecipe recipe;
  translate::TranslationData data;
  translate::TranslationTask task;
  Trainer trainer;
};

/// A translator with larger weights than a new one has, so that its translations differ. It reads max_len - 1 tokens.
inline translate::Translator lively_words(u64 seed = 1, i64 max_len = 20) {
  using namespace translate;
  const Vocabulary vocabulary = Vocabulary::of_segmented({"a b c d e f g h i@@ j"});
  Rng rng(seed);
  nn::TransformerConfig config{.src_vocab_size = vocabulary.size(),
                               .tgt_vocab_size = vocabulary.size(),
                               .layer = {.d_model = 16, .num_heads = 2, .d_ff = 24},
                               .num_encoder_layers = 1,
                               .num_decoder_layers = 1,
                               .max_len = max_len,
                               .pad_id = pad_id};
  nn::Transformer model(config, rng);
  for (Variable* weight : {&model.src_embed.weight, &model.tgt_embed.weight, &model.generator.weight})
    scale_in_place(weight->mutable_value(), 3.0);
  scale_in_place(model.decoder.layers[0].multihead_attn.as<nn::MultiHeadAttention>().out_proj.weight.mutable_value(),
                 4.0);
  for (i32 id = 0; id < first_piece_id; ++id) model.generator.bias.mutable_value()(id) = id == end_id ? 1.0 : -30.0;
  return {vocabulary, std::make_unique<TransformerTranslator>(std::move(model))};
}

}  // namespace orrery::small
