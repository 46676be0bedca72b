// Chapter 7. ConvolutionalTranslator: embed, convolve the source, convolve the target and attend, compute the logits.
#include "apps/tasks/translate/rivals/convolutional_translator.h"

#include <cmath>

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "core/tensor_ops.h"
#include "nn/layers/padding.h"
#include "nn/models/config_json.h"
#include "nn/models/stack.h"

namespace orrery::translate {
namespace {

constexpr std::string_view convolutional_config = "convolutional translator config";

// Numbers from N(0, variance).
Variable drawn_normal(const Shape& shape, double variance, Rng& rng) {
  Tensor x = randn(shape, rng);
  if (!rng.draws_shapes()) scale_in_place(x, std::sqrt(variance));
  return parameter(x);
}

constexpr double embedding_variance = 0.1 * 0.1;

nn::Embedding word_table(i64 count, i64 d_embedding, Rng& rng) {
  return nn::Embedding(drawn_normal({count, d_embedding}, embedding_variance, rng).value());
}

nn::PositionalEncoding learned_positions(const ConvolutionalTranslatorConfig& config, Rng& rng) {
  nn::PositionalEncoding encoding(nn::Positions::learned, config.max_len, config.d_embedding, rng);
  encoding.weight = drawn_normal({config.max_len, config.d_embedding}, embedding_variance, rng);
  return encoding;
}

nn::Linear normal_linear(i64 in, i64 out, Rng& rng) {
  return {drawn_normal({out, in}, 1.0 / static_cast<double>(in), rng), parameter(nn::initial_constant({out}, 0, rng))};
}

nn::Convolution before_glu(const ConvolutionalTranslatorConfig& config, ConvolutionPadding padding, Rng& rng) {
  const i64 C = config.d_hidden;
  const double variance = 4 * (1 - config.dropout) / static_cast<double>(C * config.width);
  return {drawn_normal({2 * C, C, config.width}, variance, rng), parameter(nn::initial_constant({2 * C}, 0, rng)),
          padding};
}

// a [+] b of the header: the factor keeps the variance from growing with the layers.
Variable balanced_sum(const Variable& a, const Variable& b) { return (a + b) * std::sqrt(0.5); }

}  // namespace

void ConvolutionalTranslatorConfig::validate() const {
  nn::config_json::check_fields(convolutional_config, *this);
  nn::config_json::check_vocabularies(convolutional_config, *this);
  check(width > 0 && width % 2 == 1, convolutional_config, "width must be odd and positive, not ", width);
}

i64 ConvolutionalTranslatorConfig::parameter_count() const {
  using Config = ConvolutionalTranslatorConfig;
  return nn::config_json::counted<ConvolutionalTranslator>(*this,
                                                           {&Config::num_encoder_layers, &Config::num_decoder_layers});
}

ConvolutionalTranslatorConfig ConvolutionalTranslatorConfig::of_json(const std::string& json) {
  return nn::config_json::config_of<ConvolutionalTranslatorConfig>(json, convolutional_config);
}
std::string to_json(const ConvolutionalTranslatorConfig& config) { return nn::config_json::text_of(config); }

ConvolutionalEncoderLayer::ConvolutionalEncoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng)
    : convolution(before_glu(config, ConvolutionPadding::same, rng)), dropout(config.dropout) {}

Variable ConvolutionalEncoderLayer::operator()(const Variable& h, const Mask& mask, nn::Pass& pass) const {
  return balanced_sum(glu(convolution(dropout(h, pass), mask)), h);
}

ConvolutionalDecoderLayer::ConvolutionalDecoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng)
    : convolution(before_glu(config, ConvolutionPadding::causal, rng)),
      query(normal_linear(config.d_hidden, config.d_embedding, rng)),
      attended(normal_linear(config.d_embedding, config.d_hidden, rng)),
      dropout(config.dropout) {}

Variable ConvolutionalDecoderLayer::operator()(const Variable& h, const Variable& g, const ConvolutionalMemory& memory,
                                               nn::Pass& pass) const {
  return attend(glu(convolution(dropout(h, pass))), h, g, memory, pass);
}

Variable ConvolutionalDecoderLayer::newest(const Variable& inputs, const Variable& g, const ConvolutionalMemory& memory,
                                           nn::Pass& pass) const {
  return attend(glu(convolution.without_padding(inputs)), slice(inputs, 1, convolution.width() - 1), g, memory, pass);
}

Variable ConvolutionalDecoderLayer::attend(const Variable& d, const Variable& h, const Variable& g,
                                           const ConvolutionalMemory& memory, nn::Pass& pass) const {
  const i64 B = d.size(0), T = d.size(1), S = memory.keys.size(1);
  const Variable keys = nn::with_harmless_padding(memory.keys, memory.mask),
                 values = nn::with_harmless_padding(memory.values, memory.mask);
  const Variable scores = matmul(balanced_sum(query(d), g), keys, Trans::b);
  const Variable w = masked_softmax(reshape(scores, {B, 1, T, S}), memory.mask);
  if (pass.recorder) pass.recorder->all.push_back({this, w.value()});
  return balanced_sum(balanced_sum(d, attended(matmul(reshape(w, {B, T, S}), values))), h);
}

void ConvolutionalDecoderLayer::visit(nn::Visitor& v) {
  v("convolution", convolution);
  v("query", query);
  v("attended", attended);
}

ConvolutionalTranslator::ConvolutionalTranslator(const ConvolutionalTranslatorConfig& config, Rng& rng)
    : config(nn::config_json::valid(config)),
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

Variable ConvolutionalTranslator::operator()(const Tensor& source, const Tensor& target, nn::Pass& pass) const {
  return generator(hidden(target, encode(source, pass), pass));
}

Variable ConvolutionalTranslator::loss(const Tensor& source, const Tensor& target, const Tensor& labels, nn::Pass& pass,
                                       const CrossEntropyOptions& options) const {
  const Variable last = hidden(target, encode(source, pass), pass);
  return nn::head_loss(generator, last, labels, options);
}

ConvolutionalMemory ConvolutionalTranslator::encode(const Tensor& source, nn::Pass& pass) const {
  const Mask mask = padding(source);
  const Variable e = nn::with_harmless_padding(embed(source, src_embed, src_positions, 0, pass), mask);
  Variable h = encoder_in(e);
  for (const ConvolutionalEncoderLayer& layer : encoder) h = layer(h, mask, pass);
  const Variable keys = encoder_out(h);
  return {keys, balanced_sum(keys, e), mask};
}

Variable ConvolutionalTranslator::hidden(const Tensor& target, const ConvolutionalMemory& given_memory,
                                         nn::Pass& pass) const {
  const ConvolutionalMemory memory{
      nn::with_harmless_padding(given_memory.keys, given_memory.mask),  // once for all layers
      nn::with_harmless_padding(given_memory.values, given_memory.mask), given_memory.mask};
  const Variable g = nn::with_harmless_padding(embed(target, tgt_embed, tgt_positions, 0, pass), padding(target));
  Variable h = decoder_in(g);
  for (const ConvolutionalDecoderLayer& layer : decoder) h = layer(h, g, memory, pass);
  return dropout(decoder_out(h), pass);
}

Variable ConvolutionalTranslator::embed(const Tensor& ids, const nn::Embedding& words,
                                        const nn::PositionalEncoding& encoding, i64 first_position,
                                        nn::Pass& pass) const {
  const i64 T = dims<2>(ids, "ids")[1];
  const double p = dropout.active(pass);
  const Variable rows = encoding.first_rows(first_position + T, words.weight.dtype());
  return embedding_sum(words.weight, ids, 1.0, first_position > 0 ? slice(rows, 0, first_position) : rows, p,
                       pass.draw_for(p));
}

Mask ConvolutionalTranslator::padding(const Tensor& ids) const { return padding_of(ids, config.pad_id); }

ConvolutionalTranslator ConvolutionalTranslator::clone() {
  Rng zeros = Rng::of_zeros();
  return nn::cloned(*this, ConvolutionalTranslator(config, zeros));
}

void ConvolutionalTranslator::visit(nn::Visitor& v) {
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

ConvolutionalState convolutional_state(const ConvolutionalTranslator& model, const Tensor& source) {
  nn::Pass pass = nn::Pass::inference();
  const ConvolutionalMemory memory = model.encode(source, pass);
  ConvolutionalState state{source_rows(memory.keys, memory.values, source, model.config.pad_id), {}, 0};
  const Tensor before = zeros({source.size(0), model.config.width - 1, model.config.d_hidden}, memory.keys.dtype());
  state.inputs.assign(model.decoder.size(), before);
  return state;
}

Tensor next_logits(const ConvolutionalTranslator& model, const Tensor& tokens, ConvolutionalState& state) {
  check_step(tokens, state.source);
  check(state.inputs.size() == model.decoder.size(), translator_state, "is of a model of ", state.inputs.size(),
        " layers, this one has ", model.decoder.size());
  nn::Pass pass = nn::Pass::inference();
  const ConvolutionalMemory memory{constant(state.source.keys), constant(state.source.values), state.source.mask()};
  const i64 n = tokens.size(1);
  const Variable g = model.embed(tokens, model.tgt_embed, model.tgt_positions, state.length, pass);
  Variable h = model.decoder_in(g);
  std::vector<Tensor> newest;
  for (size_t i = 0; i < model.decoder.size(); ++i) {
    const Variable inputs = concat({constant(state.inputs[i]), h}, 1);
    h = model.decoder[i].newest(inputs, g, memory, pass);
    newest.push_back(slice(inputs.value(), 1, n));
  }
  const Tensor logits = model.generator(model.decoder_out(h)).value();
  // Only now: a step that fails can be made again.
  state.inputs = std::move(newest);
  state.length += n;
  return logits;
}

void choose_rows(ConvolutionalState& state, std::span<const i64> chosen) {
  choose_source_rows(state.source, chosen);
  for (Tensor& inputs : state.inputs) inputs = nn::chosen_rows(inputs, chosen);
}

std::unique_ptr<nn::StepwiseDecoder> stepwise_decoder(const ConvolutionalTranslator& model, const Tensor& source,
                                                      i64 max_len) {
  check_max_len(model.config.max_len, max_len);
  const NoGradient nothing_recorded;
  return decoder_of(model, convolutional_state(model, source));
}

}  // namespace orrery::translate
