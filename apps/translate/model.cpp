// Chapter 9. The Transformer as a translator, and greedy translations by any model.
//
// Serves: nn/models/transformer.h
#include "apps/translate/model.h"

#include <algorithm>

#include "core/error.h"
#include "nn/files/files.h"
#include "nn/generate/decoding.h"

namespace orrery::translate {
namespace {

const std::string transformer_kind = "transformer";

}  // namespace

std::string TransformerTranslator::kind() const { return transformer_kind; }

double TransformerTranslator::kept_numbers(const BatchShape& shape) const {
  return orrery::kept_numbers(model.config, shape.rows, shape.source_length, shape.target_length, LossHead::fused);
}

Variable TransformerTranslator::loss(const TranslationBatch& batch, nn::Pass& pass,
                                     const CrossEntropyOptions& options) const {
  return model.loss(batch.source, batch.target, batch.labels, pass, options);
}

Tensor TransformerTranslator::greedy(const Tensor& source, i64 most_tokens) const {
  return nn::greedy_decode(model, source, {.bos = begin_id, .eos = end_id, .max_len = most_tokens});
}

std::unique_ptr<nn::StepwiseDecoder> TransformerTranslator::decoder(const Tensor& source, i64 most_tokens,
                                                                    i64 beam) const {
  return nn::stepwise_decoder(model, source, most_tokens, beam);
}

std::unique_ptr<TranslationModel> load_model(const std::string& path, const Metadata& metadata) {
  const auto kind = metadata.find(std::string(kind_key));
  check(kind != metadata.end(), "translate", path, " was not saved by orrery translate (it has no ", kind_key, ')');
  check(kind->second == transformer_kind, "translate", path, " holds a model of an unknown kind, ",
        printable(kind->second));
  return std::make_unique<TransformerTranslator>(nn::load_transformer(path, nn::config_of(metadata, path)));
}

std::vector<std::string> greedy_translations(const TranslationModel& model, const Vocabulary& vocabulary,
                                             const std::vector<std::span<const i32>>& sources) {
  if (sources.empty()) return {};
  const Tensor source = source_tensor(sources);
  const Tensor tokens = model.greedy(source, std::min(model.most_tokens(), 2 * source.size(1) + 10));
  const i64 T = tokens.size(1);
  std::vector<std::string> result;
  for (i64 row = 0; row < tokens.size(0); ++row) {
    const i32* begin = tokens.data<i32>() + row * T;
    result.push_back(vocabulary.text({begin, std::find(begin, begin + T, end_id)}));
  }
  return result;
}

}  // namespace orrery::translate
