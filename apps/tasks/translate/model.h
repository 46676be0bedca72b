// Chapter 9. What can stand in a translator: a model that learns from sentence pairs and writes translations.
//
// The Transformer is one. Two that it replaced are trained and compared on the same data: a recurrent one, GRUs with
// attention, and a convolutional one (apps/tasks/translate/rivals/).
//
// Translators in files: a model with its vocabulary, and what a training needs to be resumed.
//
//   FILE          the model's parameters; as metadata its kind, its configuration and the vocabulary
// A translator is used from FILE alone: `load_translator` returns all that decoding needs.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "apps/data/corpus.h"
#include "apps/show/attention/attention_page.h"
#include "apps/tasks/translate/rivals/convolutional_translator.h"
#include "apps/tasks/translate/rivals/recurrent_translator.h"
#include "apps/tasks/translate/rivals/states.h"
#include "core/files/safetensors.h"
#include "nn/models/transformer.h"

namespace orrery::translate {

enum class ModelKind { transformer, recurrent, convolutional };
/// The names of its values, in their order.
constexpr std::array<std::string_view, 3> names(ModelKind) { return {"transformer", "recurrent", "convolutional"}; }
inline std::string name_of(ModelKind kind) { return std::string(names(kind)[static_cast<size_t>(kind)]); }

class TranslationModel {
 public:
  virtual ~TranslationModel() = default;
  virtual ModelKind kind() const = 0;
  /// Its parameters by name: what is trained and saved.
  virtual nn::Module& module() = 0;
  /// Its configuration as JSON, from which `load_model` builds it again.
  virtual std::string config() const = 0;
  virtual i64 source_vocabulary_size() const = 0;
  virtual i64 vocabulary_size() const = 0;  ///< of what it writes
  virtual i32 padding_id() const = 0;
  /// The width that Noam's schedule needs: of the decoder.
  virtual i64 d_model() const = 0;
  /// The longest sentence that it reads or writes, with begin or end.
  virtual i64 most_tokens() const = 0;

  /// The cross entropy of the labels.
  virtual Variable loss(const TranslationBatch& batch, nn::Pass& pass, const CrossEntropyOptions& options) const = 0;
  /// Its decoder after reading source i32 [B, S], for `nn::beam_search`: for translations of at most `most_tokens`
  /// tokens. It refers to the model.
  virtual std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const = 0;

  /// The attention weights of one pass over source i32 [B, S] and target i32 [B, T]. The recurrent model has one layer
  /// of cross-attention, the convolutional one as many as its decoder has layers, each with one head.
  virtual AttentionMaps attention(const Tensor& source, const Tensor& target) const = 0;
  /// How many weights these are for one pair.
  virtual i64 attention_weights(i64 S, i64 T) const = 0;
};

/// One of the three models.
template <class Model> class TranslatorOf final : public TranslationModel {
 public:
  explicit TranslatorOf(Model translator) : model(std::move(translator)) {}

  ModelKind kind() const override;
  nn::Module& module() override { return model; }
  std::string config() const override { return to_json(model.config); }
  i64 source_vocabulary_size() const override { return model.config.src_vocab_size; }
  i64 vocabulary_size() const override { return model.config.tgt_vocab_size; }
  i32 padding_id() const override { return model.config.pad_id; }
  i64 d_model() const override;
  i64 most_tokens() const override;
  Variable loss(const TranslationBatch& batch, nn::Pass& pass, const CrossEntropyOptions& options) const override {
    return model.loss(batch.source, batch.target, batch.labels, pass, options);
  }
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const override {
    return stepwise_decoder(model, source, most_tokens);
  }
  AttentionMaps attention(const Tensor& source, const Tensor& target) const override;
  i64 attention_weights(i64 S, i64 T) const override;

  Model model;
};
using TransformerTranslator = TranslatorOf<nn::Transformer>;

/// The model that the metadata of `path` describe, with the parameters of that file. Errors: those of `nn::load`; a
/// kind of model that is not known.
std::unique_ptr<TranslationModel> load_model(const std::string& path, const Metadata& metadata,
                                             const std::string& program = "translate");
/// The metadata key of a model's kind.
inline constexpr std::string_view kind_key = "translation_model";

/// Translations of some sentences, in their order, each by the likeliest token at each step. Each has at most twice as
/// many tokens as the longest source and ten more, as far as the model can write them.
std::vector<std::string> greedy_translations(const TranslationModel& model, const Vocabulary& vocabulary,
                                             const std::vector<std::span<const i32>>& sources);

/// A saved model and its vocabulary, or several that write together (nn/generate/ensemble.h).
struct Translator {
  Vocabulary vocabulary;
  std::unique_ptr<TranslationModel> model;
  std::vector<std::unique_ptr<TranslationModel>> others{};

  /// The longest sentence that all of them read and write, with begin or end.
  i64 most_tokens() const;
  i64 parameter_count() const;  ///< of all models together
  /// Their decoder, as `TranslationModel::decoder`.
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens) const;
};
/// What FILE says about the model.
Metadata metadata_of(const TranslationModel& model, const Vocabulary& vocabulary);
/// Writes FILE, or leaves it as it was, with `more` metadata. Errors: those of `nn::save`.
void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more = {});
/// Reads FILE, a model of `program`. Errors: those of `load_model`; a file without a vocabulary, or with one that does
/// not fit the model.
Translator load_translator(const std::string& path, const std::string& program = "translate");
/// Reads several files as one translator. Errors also: no file; a file with another vocabulary than the first.
Translator load_ensemble(const std::vector<std::string>& paths, const std::string& program = "translate");

}  // namespace orrery::translate
