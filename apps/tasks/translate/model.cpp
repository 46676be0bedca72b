// Chapter 9. The three models as translators, read from their files, and greedy translations by any of them.
#include "apps/tasks/translate/model.h"

#include <algorithm>

#include "apps/training/model_file.h"
#include "core/error.h"
#include "nn/files/files.h"

namespace orrery::translate {
namespace {

ModelKind kind_of(const nn::TransformerConfig&) { return ModelKind::transformer; }
ModelKind kind_of(const RecurrentTranslatorConfig&) { return ModelKind::recurrent; }
ModelKind kind_of(const ConvolutionalTranslatorConfig&) { return ModelKind::convolutional; }

i64 width_of(const nn::TransformerConfig& config) { return config.layer.d_model; }
i64 width_of(const RecurrentTranslatorConfig& config) { return config.d_decoder; }
i64 width_of(const ConvolutionalTranslatorConfig& config) { return config.d_hidden; }

AttentionMaps maps_of(const nn::Transformer& model, const Tensor& source, const Tensor& target) {
  return attention_maps(model, source, target);
}
// The other models have cross-attention only, in the order of their layers.
template <class Model>
AttentionMaps maps_of(const Model& model, const Tensor& source, const Tensor& target) {
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  model(source, target, pass);
  AttentionMaps maps;
  for (const auto& layer : seen.all) maps.decoder_cross.push_back(layer.weights);
  return maps;
}

i64 weights_of(const nn::TransformerConfig& config, i64 S, i64 T) { return orrery::attention_weights(config, S, T); }
i64 weights_of(const RecurrentTranslatorConfig&, i64 S, i64 T) { return T * S; }
i64 weights_of(const ConvolutionalTranslatorConfig& config, i64 S, i64 T) { return config.num_decoder_layers * T * S; }

template <class Model, class Config>
std::unique_ptr<TranslationModel> loaded(const std::string& path, const Config& config) {
  nn::check_size(config.parameter_count(), path);
  Rng zeros = Rng::of_zeros();
  Model model(config, zeros);
  nn::load(model, path);
  return std::make_unique<TranslatorOf<Model>>(std::move(model));
}

}  // namespace

template <class Model>
ModelKind TranslatorOf<Model>::kind() const {
  return kind_of(model.config);
}
template <class Model>
i64 TranslatorOf<Model>::d_model() const {
  return width_of(model.config);
}
template <class Model>
i64 TranslatorOf<Model>::most_tokens() const {
  return model.config.max_len;
}
template <class Model>
AttentionMaps TranslatorOf<Model>::attention(const Tensor& source, const Tensor& target) const {
  return maps_of(model, source, target);
}
template <class Model>
i64 TranslatorOf<Model>::attention_weights(i64 S, i64 T) const {
  return weights_of(model.config, S, T);
}
template class TranslatorOf<nn::Transformer>;
template class TranslatorOf<RecurrentTranslator>;
template class TranslatorOf<ConvolutionalTranslator>;

std::unique_ptr<TranslationModel> load_model(const std::string& path, const Metadata& metadata) {
  const std::string& kind = model_entry(metadata, kind_key, "translate", path);
  const auto config = metadata.find(std::string(nn::config_key));
  if (kind == name_of(ModelKind::transformer))
    return std::make_unique<TransformerTranslator>(
        nn::load<nn::Transformer>(path, nn::config_of<nn::TransformerConfig>(metadata, path)));
  const std::string operation = "load " + path;
  check(config != metadata.end(), operation, "has no configuration");
  if (kind == name_of(ModelKind::recurrent))
    return loaded<RecurrentTranslator>(path,
                                       within(operation, [&] { return recurrent_translator_config(config->second); }));
  check(kind == name_of(ModelKind::convolutional), "translate", path, " holds a model of an unknown kind, ",
        printable(kind));
  return loaded<ConvolutionalTranslator>(
      path, within(operation, [&] { return convolutional_translator_config(config->second); }));
}

std::vector<std::string> greedy_translations(const TranslationModel& model, const Vocabulary& vocabulary,
                                             const std::vector<std::span<const i32>>& sources) {
  if (sources.empty()) return {};
  const Tensor source = source_tensor(sources);
  const i64 limit = std::min(model.most_tokens(), 2 * source.size(1) + 10);
  const auto decoder = model.decoder(source, limit);
  std::vector<std::string> result;
  for (const nn::Hypothesis& found : nn::beam_search(*decoder, std::vector<i64>(sources.size(), limit),
                                                     {.beam = 1, .bos = begin_id, .eos = end_id})) {
    const std::vector<i32>& tokens = found.tokens;
    result.push_back(vocabulary.text({tokens.begin(), std::find(tokens.begin(), tokens.end(), end_id)}));
  }
  return result;
}

}  // namespace orrery::translate
