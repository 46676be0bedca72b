// Chapter 9. What can stand in a translator: a model that learns from sentence pairs and writes translations.
//
// The Transformer is one. Whatever else is to be trained and compared on the same data, such as a recurrent or a
// convolutional model, derives from this class and has a line in `load_model`.
// Serves: nn/models/transformer.h
#pragma once

#include <memory>
#include <string>

#include "apps/training/memory.h"
#include "apps/translate/batches.h"
#include "core/files/safetensors.h"
#include "nn/generate/beam_search.h"
#include "nn/models/transformer.h"

namespace orrery::translate {

class TranslationModel {
 public:
  virtual ~TranslationModel() = default;
  /// The name of its kind, such as "transformer".
  virtual std::string kind() const = 0;
  /// Its parameters by name: what is trained and saved.
  virtual nn::Module& module() = 0;
  /// Its configuration as JSON, from which `load_model` builds it again.
  virtual std::string config() const = 0;
  virtual i64 vocabulary_size() const = 0;
  /// The width that Noam's schedule needs.
  virtual i64 d_model() const = 0;
  /// The longest sentence that it reads or writes, with begin or end.
  virtual i64 most_tokens() const = 0;
  /// The least that forward keeps for backward, for a batch of this size: apps/training/memory.h.
  virtual double kept_numbers(const BatchShape& shape) const = 0;

  /// The cross entropy of the labels.
  virtual Variable loss(const TranslationBatch& batch, nn::Pass& pass, const CrossEntropyOptions& options) const = 0;
  /// The likeliest token at each step, as `nn::greedy_decode` returns them: source i32 [B, S] to i32 [B, T'].
  virtual Tensor greedy(const Tensor& source, i64 most_tokens) const = 0;
  /// Its decoder after reading source i32 [B, S], for `nn::beam_search`: for translations of at most `most_tokens`
  /// tokens, and at most `beam` hypotheses for each source. It refers to the model.
  virtual std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens, i64 beam) const = 0;
};

/// The model of the paper.
class TransformerTranslator final : public TranslationModel {
 public:
  explicit TransformerTranslator(nn::Transformer transformer) : model(std::move(transformer)) {}

  std::string kind() const override;
  nn::Module& module() override { return model; }
  std::string config() const override { return nn::to_json(model.config); }
  i64 vocabulary_size() const override { return model.config.tgt_vocab_size; }
  i64 d_model() const override { return model.config.layer.d_model; }
  i64 most_tokens() const override { return model.config.max_len; }
  double kept_numbers(const BatchShape& shape) const override;
  Variable loss(const TranslationBatch& batch, nn::Pass& pass, const CrossEntropyOptions& options) const override;
  Tensor greedy(const Tensor& source, i64 most_tokens) const override;
  std::unique_ptr<nn::StepwiseDecoder> decoder(const Tensor& source, i64 most_tokens, i64 beam) const override;

  nn::Transformer model;
};

/// The model that the metadata of `path` describe, with the parameters of that file. Errors: those of `nn::load`; a
/// kind of model that is not known.
std::unique_ptr<TranslationModel> load_model(const std::string& path, const Metadata& metadata);
/// The metadata key of a model's kind.
inline constexpr std::string_view kind_key = "translation_model";

/// Greedy translations of some sentences, in their order. Each has at most twice as many tokens as its source and ten
/// more, as far as the model can write them.
std::vector<std::string> greedy_translations(const TranslationModel& model, const Vocabulary& vocabulary,
                                             const std::vector<std::span<const i32>>& sources);

}  // namespace orrery::translate
