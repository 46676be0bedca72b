// Chapter 7. RecurrentTranslator: embed, read in both directions, write with attention, compute the logits.
#include "nn/models/recurrent_translator.h"

#include "autograd/ops/activation.h"
#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"
#include "nn/models/config_rules.h"
#include "nn/models/head_loss.h"

namespace orrery::nn {

RecurrentTranslator::RecurrentTranslator(const RecurrentTranslatorConfig& config, Rng& rng)
    : config(config_json::valid(config)),
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

Variable RecurrentTranslator::operator()(const Tensor& source, const Tensor& target, Pass& pass,
                                         Tensor* weights) const {
  return generator(hidden(target, encode(source, pass), pass, weights));
}

Variable RecurrentTranslator::loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                                   const CrossEntropyOptions& options) const {
  const Variable last = hidden(target, encode(source, pass), pass);
  return head_loss(generator, last, labels, options);
}

RecurrentMemory RecurrentTranslator::encode(const Tensor& source, Pass& pass) const {
  const Mask mask = padding(source);
  const auto [annotations, last] = encoder(dropout(src_embed(source), pass), mask);
  return {annotations, tanh(bridge(last)), mask};
}

Variable RecurrentTranslator::hidden(const Tensor& target, const RecurrentMemory& memory, Pass& pass,
                                     Tensor* weights) const {
  const Variable words = with_harmless_padding(dropout(tgt_embed(target), pass), padding(target));
  const auto [states, contexts] = decoder(words, memory.first_state, memory.annotations, memory.mask, weights);
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
  return cloned(*this, RecurrentTranslator(config, zeros));
}

void RecurrentTranslator::visit(Visitor& v) {
  v("src_embed", src_embed);
  v("tgt_embed", tgt_embed);
  v("encoder", encoder);
  v("bridge", bridge);
  v("decoder", decoder);
  v("output", output);
  v("generator", generator);
}

}  // namespace orrery::nn
