// Chapter 7. RecurrentTranslator: embed, read in both directions, write with attention, compute the logits.
#include "apps/tasks/translate/rivals/recurrent_translator.h"

#include <cmath>

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "core/tensor_ops.h"
#include "nn/layers/padding.h"
#include "nn/models/config_json.h"
#include "nn/models/stack.h"

namespace orrery::translate {
namespace {

constexpr std::string_view recurrent_config = "recurrent translator config";

// h_t from the state before, h [B, H], and the two sums that its gates add up, [B, 3 H] each: a of the input, b of h.
Variable gru_step(const Variable& a, const Variable& b, const Variable& h) {
  const auto [a_r, a_z, a_n] = split3(a, 1);
  const auto [b_r, b_z, b_n] = split3(b, 1);
  const Variable r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n);
  return n + z * (h - n);
}

// `next` in the rows that have a position t, `before` in those where it is padding.
Variable unless_padding(const Variable& next, const Variable& before, const Mask& mask, i64 t, i64 T) {
  const i64 B = next.size(0);
  Tensor real = zeros({B, 1}, next.dtype());
  i64 count = 0;
  for (i64 row = 0; row < B; ++row) {
    const bool is_real = t < mask.length(row, T);
    real.set(row, is_real ? 1 : 0);
    count += is_real;
  }
  return count == B ? next : next * constant(real) + before * constant(1.0 - real);
}

// What a loop over positions has made, [B, 1, columns] each, as [B, T, columns].
Variable joined_positions(const std::vector<Variable>& parts, i64 B, i64 columns, Dtype dtype) {
  return parts.empty() ? constant(zeros({B, 0, columns}, dtype)) : concat(parts, 1);
}

}  // namespace

Gru::Gru(i64 in, i64 H, Rng& rng, bool reverse) : reverse(reverse) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(H));
  const auto drawn = [&](const Shape& shape) { return parameter(rand_uniform(shape, -bound, bound, rng)); };
  weight_ih = drawn({3 * H, in});
  weight_hh = drawn({3 * H, H});
  bias_ih = drawn({3 * H});
  bias_hh = drawn({3 * H});
}

Variable Gru::operator()(const Variable& x, const Mask& mask, const Variable& h0) const {
  const i64 H = weight_hh.size(1);
  const Variable gates = linear(nn::with_harmless_padding(x, mask), weight_ih, bias_ih);
  const auto [B, T, columns] = dims<3>(gates.value(), "gru");
  mask.check_padding_fits(B, T);
  Variable h = h0.defined() ? h0 : constant(zeros({B, H}, x.dtype()));
  std::vector<Variable> states(static_cast<size_t>(T));
  for (i64 step = 0; step < T; ++step) {
    const i64 t = reverse ? T - 1 - step : step;
    const Variable a = reshape(slice(gates, 1, t, t + 1), {B, columns});
    h = unless_padding(gru_step(a, linear(h, weight_hh, bias_hh), h), h, mask, t, T);
    states[static_cast<size_t>(t)] = reshape(h, {B, 1, H});
  }
  return joined_positions(states, B, H, x.dtype());
}

Variable Gru::last(const Variable& states) const {
  const auto [B, T, H] = dims<3>(states.value(), "states");
  check(T > 0, "gru", "no position, so no last state");
  return reshape(slice(states, 1, reverse ? 0 : T - 1, reverse ? 1 : T), {B, H});
}

void Gru::visit(nn::Visitor& v) {
  const std::string end = reverse ? "_l0_reverse" : "_l0";
  v("weight_ih" + end, weight_ih);
  v("weight_hh" + end, weight_hh);
  v("bias_ih" + end, bias_ih);
  v("bias_hh" + end, bias_hh);
}

BidirectionalGru::Result BidirectionalGru::operator()(const Variable& x, const Mask& mask) const {
  const Variable in = nn::with_harmless_padding(x, mask), ahead = forward(in, mask), back = backward(in, mask);
  return {concat({ahead, back}, 2), concat({forward.last(ahead), backward.last(back)}, 1)};
}

AttentiveGru::AttentiveGru(const AttentiveGruSizes& s, Rng& rng)
    : input(s.in, 3 * s.H, rng, {.init = nn::Init::pytorch_linear}),
      context(s.M, 3 * s.H, rng, {.bias = false, .init = nn::Init::pytorch_linear}),
      recurrent(s.H, 3 * s.H, rng, {.init = nn::Init::pytorch_linear}),
      query(s.H, s.A, rng, {.bias = false, .init = nn::Init::pytorch_linear}),
      key(s.M, s.A, rng, {.init = nn::Init::pytorch_linear}),
      v(parameter(nn::initial_weight(nn::Init::pytorch_linear, 1, s.A, rng).reshape({s.A}))) {}

AttentiveGruResult AttentiveGru::operator()(const Variable& x, const Variable& s0, const Variable& memory,
                                            const Mask& mask, nn::AttentionRecorder* recorder) const {
  const Variable harmless = nn::with_harmless_padding(memory, mask);
  return (*this)(x, s0, harmless, key(harmless), mask, recorder);
}

AttentiveGruResult AttentiveGru::operator()(const Variable& x, const Variable& s0, const Variable& given_memory,
                                            const Variable& given_keys, const Mask& mask,
                                            nn::AttentionRecorder* recorder) const {
  const Variable memory = nn::with_harmless_padding(given_memory, mask),
                 keys = nn::with_harmless_padding(given_keys, mask);
  const auto [B, S, A] = dims<3>(keys.value(), "keys");
  const i64 T = dims<3>(x.value(), "x")[1], H = s0.size(1), M = memory.size(2);
  const Mask padding = mask.padding_only();
  const Variable gates = input(x), column = reshape(v, {A, 1});
  std::vector<Variable> states, contexts, seen;
  Variable s = s0;
  for (i64 t = 0; t < T; ++t) {
    const Variable scores = matmul(tanh(reshape(query(s), {B, 1, A}) + keys), column);
    const Variable w = reshape(masked_softmax(reshape(scores, {B, 1, 1, S}), padding), {B, 1, S});
    const Variable c = matmul(w, memory);
    s = gru_step(reshape(slice(gates, 1, t, t + 1) + context(c), {B, 3 * H}), recurrent(s), s);
    states.push_back(reshape(s, {B, 1, H}));
    contexts.push_back(c);
    if (recorder) seen.push_back(constant(w.value()));
  }
  if (recorder)
    recorder->all.push_back({this, joined_positions(seen, B, S, s.dtype()).value().reshape({B, 1, T, S})});
  return {joined_positions(states, B, H, s.dtype()), joined_positions(contexts, B, M, s.dtype())};
}

void AttentiveGru::visit(nn::Visitor& visitor) {
  visitor("input", input);
  visitor("context", context);
  visitor("recurrent", recurrent);
  visitor("query", query);
  visitor("key", key);
  visitor("v", v);
}

void RecurrentTranslatorConfig::validate() const {
  nn::config_json::check_fields(recurrent_config, *this);
  nn::config_json::check_vocabularies(recurrent_config, *this);
  check(d_output >= 0, recurrent_config, "d_output must be positive, or 0 for none, not ", d_output);
}

i64 RecurrentTranslatorConfig::parameter_count() const { return nn::config_json::counted<RecurrentTranslator>(*this); }

RecurrentTranslatorConfig RecurrentTranslatorConfig::of_json(const std::string& json) {
  return nn::config_json::config_of<RecurrentTranslatorConfig>(json, recurrent_config);
}
std::string to_json(const RecurrentTranslatorConfig& config) { return nn::config_json::text_of(config); }

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
  const auto [states, contexts] = decoder(words, memory.first_state, memory.annotations, memory.mask, pass.recorder);
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
