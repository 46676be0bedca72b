// Chapter 7. RecurrentTranslator: embed, read in both directions, write with attention, compute the logits.
#include "apps/tasks/translate/rivals/recurrent_translator.h"

#include "autograd/ops/activation.h"
#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"
#include "nn/models/config_json.h"
#include "nn/models/stack.h"

namespace orrery::translate {
namespace {

constexpr std::string_view recurrent_config = "recurrent translator config";

}  // namespace

void RecurrentTranslatorConfig::validate() const {
  nn::config_json::check_fields(recurrent_config, *this);
  nn::config_json::check_vocabularies(recurrent_config, *this);
  check(d_output >= 0, recurrent_config, "d_output must be positive, or 0 for none, not ", d_output);
}

i64 RecurrentTranslatorConfig::parameter_count() const {
  const auto times = [](i64 a, i64 b) { return static_cast<double>(a) * static_cast<double>(b); };
  const auto linear_count = [](i64 in, i64 out) { return nn::Linear::parameter_count(in, out, {}); };
  const double tables = times(src_vocab_size + (share_embeddings ? 0 : tgt_vocab_size), d_embedding);
  const AttentiveGruSizes decoder{.in = d_embedding, .H = d_decoder, .M = 2 * d_encoder, .A = d_attention};
  const double output = d_output > 0 ? linear_count(d_decoder + 2 * d_encoder + d_embedding, d_output) : 0;
  const double tied = shares_generator() ? times(tgt_vocab_size, d_embedding) : 0;
  return nn::config_json::whole(tables + BidirectionalGru::parameter_count(d_embedding, d_encoder) +
                                linear_count(2 * d_encoder, d_decoder) + AttentiveGru::parameter_count(decoder) +
                                output + linear_count(generator_inputs(), tgt_vocab_size) - tied);
}

std::string to_json(const RecurrentTranslatorConfig& config) { return nn::config_json::text_of(config); }
RecurrentTranslatorConfig recurrent_translator_config(const std::string& text) {
  return nn::config_json::config_of<RecurrentTranslatorConfig>(text, recurrent_config);
}

RecurrentTranslator::RecurrentTranslator(const RecurrentTranslatorConfig& config, Rng& rng)
    : config(nn::config_json::valid(config)),
      src_embed(config.src_vocab_size, config.d_embedding, rng),
      tgt_embed(config.tgt_vocab_size, config.d_embedding, rng),
      encoder(config.d_embedding, config.d_encoder, rng),
      bridge(2 * config.d_encoder, config.d_decoder, rng),
      decoder({.in = config.d_embedding, .H = config.d_decoder, .M = 2 * config.d_encoder, .A = config.d_attention},
              rng),
      generator(config.generator_inputs(), config.tgt_vocab_size, rng),
      dropout(config.dropout),
      output_dropout(config.output_dropout) {
  if (config.d_output > 0)
    output.emplace(config.d_decoder + 2 * config.d_encoder + config.d_embedding, config.d_output, rng);
  if (config.share_embeddings) tgt_embed.weight = src_embed.weight;
  if (config.shares_generator()) generator.weight = src_embed.weight;
  name_parameters();
}

Variable RecurrentTranslator::operator()(const Tensor& source, const Tensor& target, nn::Pass& pass) const {
  return generator(hidden(target, encode(source, pass), pass));
}

Variable RecurrentTranslator::loss(const Tensor& source, const Tensor& target, const Tensor& labels, nn::Pass& pass,
                                   const CrossEntropyOptions& options) const {
  const Variable last = hidden(target, encode(source, pass), pass);
  return nn::head_loss(generator, last, labels, options);
}

RecurrentMemory RecurrentTranslator::encode(const Tensor& source, nn::Pass& pass) const {
  const Mask mask = padding(source);
  const auto [annotations, last] = encoder(dropout(src_embed(source), pass), mask);
  return {annotations, tanh(bridge(last)), mask};
}

Variable RecurrentTranslator::hidden(const Tensor& target, const RecurrentMemory& memory, nn::Pass& pass) const {
  const Variable words = nn::with_harmless_padding(dropout(tgt_embed(target), pass), padding(target));
  Tensor weights;  // [B, T, S]
  const auto [states, contexts] =
      decoder(words, memory.first_state, memory.annotations, memory.mask, pass.recorder ? &weights : nullptr);
  if (pass.recorder)
    pass.recorder->all.push_back({&decoder, weights.reshape({weights.size(0), 1, weights.size(1), weights.size(2)})});
  return output_dropout(read(states, contexts, words), pass);
}

Variable RecurrentTranslator::next_hidden(const Tensor& target, const Variable& annotations, const Variable& keys,
                                          const Mask& mask, Tensor& state) const {
  const Variable words = tgt_embed(target);
  const auto [states, contexts] = decoder(words, constant(state), annotations, keys, mask);
  const auto [B, T, H] = dims<3>(states.value(), "states");
  if (T > 0) state = slice(states.value(), 1, T - 1).reshape({B, H});
  return read(states, contexts, words);
}

Variable RecurrentTranslator::read(const Variable& states, const Variable& contexts, const Variable& words) const {
  const Variable all = concat({states, contexts, words}, 2);
  return output ? tanh((*output)(all)) : all;
}

Mask RecurrentTranslator::padding(const Tensor& ids) const { return padding_of(ids, config.pad_id); }

RecurrentTranslator RecurrentTranslator::clone() {
  Rng zeros = Rng::of_zeros();
  return nn::cloned(*this, RecurrentTranslator(config, zeros));
}

void RecurrentTranslator::visit(nn::Visitor& v) {
  v("src_embed", src_embed);
  v("tgt_embed", tgt_embed);
  v("encoder", encoder);
  v("bridge", bridge);
  v("decoder", decoder);
  v("output", output);
  v("generator", generator);
}

RecurrentState recurrent_state(const RecurrentTranslator& model, const Tensor& source) {
  nn::Pass pass = nn::Pass::inference();
  const RecurrentMemory memory = model.encode(source, pass);
  const Variable keys = model.decoder.key(memory.annotations);
  return {source_rows(keys, memory.annotations, source, model.config.pad_id), memory.first_state.value()};
}

Tensor next_logits(const RecurrentTranslator& model, const Tensor& tokens, RecurrentState& state) {
  check_step(tokens, state.source);
  const SourceRows& source = state.source;
  Tensor after = state.state;
  const Variable hidden =
      model.next_hidden(tokens, constant(source.values), constant(source.keys), source.mask(), after);
  const Tensor logits = model.generator(hidden).value();
  state.state = after;  // only now: a step that fails can be made again
  return logits;
}

void choose_rows(RecurrentState& state, std::span<const i64> chosen) {
  choose_source_rows(state.source, chosen);
  state.state = nn::chosen_rows(state.state, chosen);
}

std::unique_ptr<nn::StepwiseDecoder> stepwise_decoder(const RecurrentTranslator& model, const Tensor& source,
                                                      i64 max_len) {
  check_max_len(model.config.max_len, max_len);
  const NoGradient nothing_recorded;
  return decoder_of(model, recurrent_state(model, source));
}

}  // namespace orrery::translate
