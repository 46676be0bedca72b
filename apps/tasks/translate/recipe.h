// Chapter 9. Recipes of translators: the model, and how it is trained.
//
// The preset `published` is the recipe of a published result on Multi30k, English to German: BLEU 41.02 with 2.55
// million weights ("Good for Misconceived Reasons", Wu et al. 2021). The settings are those of README-baseline.md in
// the authors' repository and the defaults of its fairseq. Two GPUs with 4,096 tokens each are two micro-batches here.
// The preset `tiny` trains the same model with Muon (optim/muon.h), on a third of the tokens.
// The recurrent and the convolutional model are of similar size, so that they can be compared with it: with Multi30k's
// vocabulary they have 2.16 and 2.31 million parameters. Their presets are `published` with a lower rate, stronger
// clipping and `keep_last` off.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/tasks/translate/model.h"
#include "apps/training/recipe.h"

namespace orrery::translate {

/// Recurrent and convolutional models of a size like that of `nn::tiny`.
RecurrentTranslatorConfig tiny_recurrent();
ConvolutionalTranslatorConfig tiny_convolutional();

/// Everything that decides how a translator is trained, except the text.
struct TranslationRecipe : TrainingRecipe {
  ModelKind kind = ModelKind::transformer;
  // The three models; `kind` says which is trained. Vocabulary, pad_id and max_len follow from the text.
  nn::TransformerConfig model = nn::tiny(first_piece_id + 1);
  RecurrentTranslatorConfig recurrent = tiny_recurrent();
  ConvolutionalTranslatorConfig convolutional = tiny_convolutional();
  i64 batch_tokens = 4096;  ///< of a micro-batch: source or target, whichever has more, padding included
  i64 most_tokens = 256;    ///< pairs with a longer sentence are left out; the model can write one token more
  double smoothing = 0.1;   ///< label smoothing
  bool segmented = false;   ///< the text is segmented already (vocabulary.h)
  i64 vocabulary = 8000;    ///< tokens that SentencePiece looks for at most
  bool keep_last = false;   ///< keep the parameters of the last evaluation instead of those with the lowest loss

  /// The same recipe with the model that is trained as it is for a vocabulary of this size.
  TranslationRecipe with_vocabulary(i64 size) const;
  /// The number of its parameters.
  i64 parameter_count() const;
  /// Errors: numbers with which no training is possible.
  void validate() const;
};

/// The presets: "tiny", "published", "small" and "base". Their `evaluate_every` is `automatic`, which stands for an
/// epoch.
const std::vector<std::string>& translation_preset_names();
TranslationRecipe translation_preset(const std::string& name);
/// The same for a kind of model: "tiny" for the Transformer, and one for each of the others.
TranslationRecipe translation_preset(ModelKind kind);

/// The model of a recipe, with parameters drawn from `weights`.
std::unique_ptr<TranslationModel> new_model(const TranslationRecipe& recipe, Rng weights);

}  // namespace orrery::translate
