// Chapter 9. The three models as translators, read from their files, and greedy translations by any of them.
//
// Writing and reading the files of a translator.
#include "apps/tasks/translate/model.h"

#include <algorithm>

#include "apps/training/training_files.h"
#include "core/error.h"
#include "nn/files/files.h"
#include "nn/generate/ensemble.h"

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
template <class Model> AttentionMaps maps_of(const Model& model, const Tensor& source, const Tensor& target) {
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

template <class Model> std::unique_ptr<TranslationModel> loaded(const std::string& path, const Metadata& metadata) {
  const auto config = nn::config_of<decltype(Model::config)>(metadata, path);
  return std::make_unique<TranslatorOf<Model>>(nn::load<Model>(path, config));
}

}  // namespace

template <class Model> ModelKind TranslatorOf<Model>::kind() const { return kind_of(model.config); }
template <class Model> i64 TranslatorOf<Model>::d_model() const { return width_of(model.config); }
template <class Model> i64 TranslatorOf<Model>::most_tokens() const { return model.config.max_len; }
template <class Model> AttentionMaps TranslatorOf<Model>::attention(const Tensor& source, const Tensor& target) const {
  return maps_of(model, source, target);
}
template <class Model> i64 TranslatorOf<Model>::attention_weights(i64 S, i64 T) const {
  return weights_of(model.config, S, T);
}
template class TranslatorOf<nn::Transformer>;
template class TranslatorOf<RecurrentTranslator>;
template class TranslatorOf<ConvolutionalTranslator>;

std::unique_ptr<TranslationModel> load_model(const std::string& path, const Metadata& metadata,
                                             const std::string& program) {
  const std::string& kind = model_entry(metadata, kind_key, program, path);
  if (kind == name_of(ModelKind::transformer)) return loaded<nn::Transformer>(path, metadata);
  if (kind == name_of(ModelKind::recurrent)) return loaded<RecurrentTranslator>(path, metadata);
  check(kind == name_of(ModelKind::convolutional), program, path, " holds a model of an unknown kind, ",
        printable(kind));
  return loaded<ConvolutionalTranslator>(path, metadata);
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

Metadata metadata_of(const TranslationModel& model, const Vocabulary& vocabulary) {
  return {{std::string(kind_key), name_of(model.kind())},
          {std::string(nn::config_key), model.config()},
          {std::string(vocabulary_key), vocabulary.to_json()}};
}

void save_translator(TranslationModel& model, const Vocabulary& vocabulary, const std::string& path,
                     const Metadata& more) {
  Metadata metadata = metadata_of(model, vocabulary);
  metadata.insert(more.begin(), more.end());
  nn::save(model.module(), path, metadata);
}

Translator load_translator(const std::string& path, const std::string& program) {
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished(program, path, metadata);
  const std::string& saved_vocabulary = model_entry(metadata, vocabulary_key, program, path);
  const Vocabulary vocabulary = within("load " + path, [&] { return Vocabulary::from_json(saved_vocabulary); });
  Translator translator{vocabulary, load_model(path, metadata, program)};
  const TranslationModel& model = *translator.model;
  for (const i64 size : {model.source_vocabulary_size(), model.vocabulary_size()})
    check(size == vocabulary.size(), program, path, " holds a model of ", size, " tokens and a vocabulary of ",
          vocabulary.size());
  check(model.padding_id() == pad_id, program, path, " holds a model whose padding is token ", model.padding_id(),
        "; that of its vocabulary is ", pad_id);
  return translator;
}

Translator load_ensemble(const std::vector<std::string>& paths, const std::string& program) {
  check(!paths.empty(), program, "an ensemble needs a model");
  Translator all = load_translator(paths[0], program);
  for (size_t i = 1; i < paths.size(); ++i) {
    Translator other = load_translator(paths[i], program);
    check(other.vocabulary.to_json() == all.vocabulary.to_json(), program, paths[i], " has another vocabulary than ",
          paths[0], ": they cannot write together");
    all.others.push_back(std::move(other.model));
  }
  return all;
}

i64 Translator::most_tokens() const {
  i64 most = model->most_tokens();
  for (const auto& other : others) most = std::min(most, other->most_tokens());
  return most;
}

i64 Translator::parameter_count() const {
  i64 count = model->module().parameter_count();
  for (const auto& other : others) count += other->module().parameter_count();
  return count;
}

std::unique_ptr<nn::StepwiseDecoder> Translator::decoder(const Tensor& source, i64 most_tokens) const {
  if (others.empty()) return model->decoder(source, most_tokens);
  std::vector<std::unique_ptr<nn::StepwiseDecoder>> all;
  all.push_back(model->decoder(source, most_tokens));
  for (const auto& other : others) all.push_back(other->decoder(source, most_tokens));
  return nn::ensemble_of(std::move(all));
}

}  // namespace orrery::translate
