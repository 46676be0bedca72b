// Chapter 7. ConvolutionalTranslator: embed, convolve the source, convolve the target and attend, compute the logits.
#include "nn/models/convolutional_translator.h"

#include <cmath>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/glu.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "core/tensor_ops.h"
#include "nn/layers/padding.h"
#include "nn/models/config_rules.h"
#include "nn/models/head_loss.h"

namespace orrery::nn {
namespace {

// Numbers from N(0, variance).
Variable drawn_normal(const Shape& shape, double variance, Rng& rng) {
  Tensor x = randn(shape, rng);
  scale_in_place(x, std::sqrt(variance));
  return parameter(x);
}

constexpr double embedding_variance = 0.1 * 0.1;

Embedding word_table(i64 count, i64 d_embedding, Rng& rng) {
  return Embedding(drawn_normal({count, d_embedding}, embedding_variance, rng).value());
}

PositionalEncoding learned_positions(const ConvolutionalTranslatorConfig& config, Rng& rng) {
  PositionalEncoding encoding(Positions::learned, config.max_len, config.d_embedding, rng);
  encoding.weight = drawn_normal({config.max_len, config.d_embedding}, embedding_variance, rng);
  return encoding;
}

Linear normal_linear(i64 in, i64 out, Rng& rng) {
  return {drawn_normal({out, in}, 1.0 / static_cast<double>(in), rng), parameter(zeros({out}))};
}

Convolution before_glu(const ConvolutionalTranslatorConfig& config, ConvolutionPadding padding, Rng& rng) {
  const i64 C = config.d_hidden;
  const double variance = 4 * (1 - config.dropout) / static_cast<double>(C * config.width);
  return {drawn_normal({2 * C, C, config.width}, variance, rng), parameter(zeros({2 * C})), padding};
}

// a [+] b of the header: the factor keeps the variance from growing with the layers.
Variable balanced_sum(const Variable& a, const Variable& b) { return (a + b) * std::sqrt(0.5); }

}  // namespace

ConvolutionalEncoderLayer::ConvolutionalEncoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng)
    : convolution(before_glu(config, ConvolutionPadding::same, rng)), dropout(config.dropout) {}

Variable ConvolutionalEncoderLayer::operator()(const Variable& h, const Mask& mask, Pass& pass) const {
  return balanced_sum(glu(convolution(dropout(h, pass), mask)), h);
}

ConvolutionalDecoderLayer::ConvolutionalDecoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng)
    : convolution(before_glu(config, ConvolutionPadding::causal, rng)),
      query(normal_linear(config.d_hidden, config.d_embedding, rng)),
      attended(normal_linear(config.d_embedding, config.d_hidden, rng)),
      dropout(config.dropout) {}

Variable ConvolutionalDecoderLayer::operator()(const Variable& h, const Variable& g, const ConvolutionalMemory& memory,
                                               Pass& pass, Tensor* weights) const {
  return attend(glu(convolution(dropout(h, pass))), h, g, memory, weights);
}

Variable ConvolutionalDecoderLayer::newest(const Variable& inputs, const Variable& g,
                                           const ConvolutionalMemory& memory) const {
  return attend(glu(convolution.without_padding(inputs)), slice(inputs, 1, convolution.width() - 1), g, memory,
                nullptr);
}

Variable ConvolutionalDecoderLayer::attend(const Variable& d, const Variable& h, const Variable& g,
                                           const ConvolutionalMemory& memory, Tensor* weights) const {
  const i64 B = d.size(0), T = d.size(1), S = memory.keys.size(1);
  const Variable keys = with_harmless_padding(memory.keys, memory.mask),
                 values = with_harmless_padding(memory.values, memory.mask);
  const Variable scores = matmul(balanced_sum(query(d), g), keys, Trans::b);
  const Variable w = reshape(masked_softmax(reshape(scores, {B, 1, T, S}), memory.mask), {B, T, S});
  if (weights) *weights = w.value();
  return balanced_sum(balanced_sum(d, attended(matmul(w, values))), h);
}

void ConvolutionalDecoderLayer::visit(Visitor& v) {
  v("convolution", convolution);
  v("query", query);
  v("attended", attended);
}

ConvolutionalTranslator::ConvolutionalTranslator(const ConvolutionalTranslatorConfig& config, Rng& rng)
    : config(config_json::valid(config)),
      src_embed(word_table(config.src_vocab_size, config.d_embedding, rng)),
      tgt_embed(word_table(config.tgt_vocab_size, config.d_embedding, rng)),
      src_positions(learned_positions(config, rng)),
      tgt_positions(learned_positions(config, rng)),
      encoder_in(normal_linear(config.d_embedding, config.d_hidden, rng)),
      encoder_out(normal_linear(config.d_hidden, config.d_embedding, rng)),
      decoder_in(normal_linear(config.d_embedding, config.d_hidden, rng)),
      decoder_out(normal_linear(config.d_hidden, config.d_embedding, rng)),
      generator(normal_linear(config.d_embedding, config.tgt_vocab_size, rng)),
      dropout(config.dropout) {
  for (i64 i = 0; i < config.num_encoder_layers; ++i) encoder.emplace_back(config, rng);
  for (i64 i = 0; i < config.num_decoder_layers; ++i) decoder.emplace_back(config, rng);
  if (config.share_embeddings) tgt_embed.weight = generator.weight = src_embed.weight;
  name_parameters();
}

Variable ConvolutionalTranslator::operator()(const Tensor& source, const Tensor& target, Pass& pass,
                                             std::vector<Tensor>* weights) const {
  return generator(hidden(target, encode(source, pass), pass, weights));
}

Variable ConvolutionalTranslator::loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                                       const CrossEntropyOptions& options) const {
  const Variable last = hidden(target, encode(source, pass), pass);
  return head_loss(generator, last, labels, options);
}

ConvolutionalMemory ConvolutionalTranslator::encode(const Tensor& source, Pass& pass) const {
  const Mask mask = padding(source);
  const Variable e = with_harmless_padding(embed(source, src_embed, src_positions, 0, pass), mask);
  Variable h = encoder_in(e);
  for (const ConvolutionalEncoderLayer& layer : encoder) h = layer(h, mask, pass);
  const Variable keys = encoder_out(h);
  return {keys, balanced_sum(keys, e), mask};
}

Variable ConvolutionalTranslator::hidden(const Tensor& target, const ConvolutionalMemory& given_memory, Pass& pass,
                                         std::vector<Tensor>* weights) const {
  const ConvolutionalMemory memory{with_harmless_padding(given_memory.keys, given_memory.mask),  // once for all layers
                                   with_harmless_padding(given_memory.values, given_memory.mask), given_memory.mask};
  const Variable g = with_harmless_padding(embed(target, tgt_embed, tgt_positions, 0, pass), padding(target));
  Variable h = decoder_in(g);
  if (weights) weights->resize(decoder.size());
  for (size_t i = 0; i < decoder.size(); ++i) h = decoder[i](h, g, memory, pass, weights ? &(*weights)[i] : nullptr);
  return dropout(decoder_out(h), pass);
}

Variable ConvolutionalTranslator::embed(const Tensor& ids, const Embedding& words, const PositionalEncoding& encoding,
                                        i64 first_position, Pass& pass) const {
  const i64 T = dims<2>(ids, "ids")[1];
  const double p = dropout.active(pass);
  const Variable rows = encoding.first_rows(first_position + T, words.weight.dtype());
  return embedding_sum(words.weight, ids, 1.0, first_position > 0 ? slice(rows, 0, first_position) : rows, p,
                       pass.draw_for(p));
}

Mask ConvolutionalTranslator::padding(const Tensor& ids) const { return padding_of(ids, config.pad_id); }

ConvolutionalTranslator ConvolutionalTranslator::clone() {
  Rng zeros = Rng::of_zeros();
  return cloned(*this, ConvolutionalTranslator(config, zeros));
}

void ConvolutionalTranslator::visit(Visitor& v) {
  v("src_embed", src_embed);
  v("tgt_embed", tgt_embed);
  v("src_positions", src_positions);
  v("tgt_positions", tgt_positions);
  v("encoder.in", encoder_in);
  v("encoder.layers", encoder);
  v("encoder.out", encoder_out);
  v("decoder.in", decoder_in);
  v("decoder.layers", decoder);
  v("decoder.out", decoder_out);
  v("generator", generator);
}

}  // namespace orrery::nn
