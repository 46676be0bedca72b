// Chapter 7. Configurations of the translators: checking them, and their fields by name.
#include "nn/models/translator_config.h"

#include "nn/layers/attentive_gru.h"
#include "nn/layers/convolution.h"
#include "nn/layers/recurrent.h"
#include "nn/models/config_json.h"

namespace orrery::nn {
namespace {

constexpr std::string_view recurrent_operation = "recurrent translator config";
constexpr std::string_view convolutional_operation = "convolutional translator config";

// What both configurations have.
template <class Config>
void check_common(std::string_view operation, const Config& config) {
  config_json::check_vocabularies(operation, config);
  config_json::check_positive(operation, "d_embedding", config.d_embedding);
  config_json::check_probability(operation, "dropout", config.dropout);
}

double times(i64 a, i64 b) { return static_cast<double>(a) * static_cast<double>(b); }
double linear_count(i64 in, i64 out) { return Linear::parameter_count(in, out, {}); }

}  // namespace

// Calls field(name, value) for every field (nn/models/config_json.h).
template <class Field>
static void for_each_field(RecurrentTranslatorConfig& config, Field&& field) {
  field("src_vocab_size", config.src_vocab_size);
  field("tgt_vocab_size", config.tgt_vocab_size);
  field("d_embedding", config.d_embedding);
  field("d_encoder", config.d_encoder);
  field("d_decoder", config.d_decoder);
  field("d_attention", config.d_attention);
  field("d_output", config.d_output);
  field("dropout", config.dropout);
  field("output_dropout", config.output_dropout);
  field("max_len", config.max_len);
  field("pad_id", config.pad_id);
  field("share_embeddings", config.share_embeddings);
}
template <class Field>
static void for_each_field(ConvolutionalTranslatorConfig& config, Field&& field) {
  field("src_vocab_size", config.src_vocab_size);
  field("tgt_vocab_size", config.tgt_vocab_size);
  field("d_embedding", config.d_embedding);
  field("d_hidden", config.d_hidden);
  field("num_encoder_layers", config.num_encoder_layers);
  field("num_decoder_layers", config.num_decoder_layers);
  field("width", config.width);
  field("dropout", config.dropout);
  field("max_len", config.max_len);
  field("pad_id", config.pad_id);
  field("share_embeddings", config.share_embeddings);
}

void RecurrentTranslatorConfig::validate() const {
  using config_json::check_positive;
  check_common(recurrent_operation, *this);
  check_positive(recurrent_operation, "d_encoder", d_encoder);
  check_positive(recurrent_operation, "d_decoder", d_decoder);
  check_positive(recurrent_operation, "d_attention", d_attention);
  check(d_output >= 0, recurrent_operation, "d_output must be positive, or 0 for none, not ", d_output);
  check_positive(recurrent_operation, "max_len", max_len);
  config_json::check_probability(recurrent_operation, "output_dropout", output_dropout);
}

void ConvolutionalTranslatorConfig::validate() const {
  using config_json::check_positive;
  check_common(convolutional_operation, *this);
  check_positive(convolutional_operation, "d_hidden", d_hidden);
  check_positive(convolutional_operation, "num_encoder_layers", num_encoder_layers);
  check_positive(convolutional_operation, "num_decoder_layers", num_decoder_layers);
  check_positive(convolutional_operation, "max_len", max_len);
  check(width > 0 && width % 2 == 1, convolutional_operation, "width must be odd and positive, not ", width);
}

i64 RecurrentTranslatorConfig::parameter_count() const {
  const double tables = times(src_vocab_size + (share_embeddings ? 0 : tgt_vocab_size), d_embedding);
  const AttentiveGruSizes decoder{.in = d_embedding, .H = d_decoder, .M = 2 * d_encoder, .A = d_attention};
  const double output = d_output > 0 ? linear_count(d_decoder + 2 * d_encoder + d_embedding, d_output) : 0;
  const double tied = shares_generator() ? times(tgt_vocab_size, d_embedding) : 0;
  return config_json::whole(tables + BidirectionalGru::parameter_count(d_embedding, d_encoder) +
                            linear_count(2 * d_encoder, d_decoder) + AttentiveGru::parameter_count(decoder) + output +
                            linear_count(generator_inputs(), tgt_vocab_size) - tied);
}

i64 ConvolutionalTranslatorConfig::parameter_count() const {
  const double tables =
      times(src_vocab_size + tgt_vocab_size + 2 * max_len, d_embedding) + linear_count(d_embedding, tgt_vocab_size);
  const double tied = share_embeddings ? 2 * times(tgt_vocab_size, d_embedding) : 0;
  const double convolution = Convolution::parameter_count(d_hidden, 2 * d_hidden, width);
  const double in_and_out = linear_count(d_embedding, d_hidden) + linear_count(d_hidden, d_embedding);
  return config_json::whole(tables - tied + 2 * in_and_out + static_cast<double>(num_encoder_layers) * convolution +
                            static_cast<double>(num_decoder_layers) * (convolution + in_and_out));
}

std::string to_json(const RecurrentTranslatorConfig& config) { return config_json::text_of(config); }
std::string to_json(const ConvolutionalTranslatorConfig& config) { return config_json::text_of(config); }

RecurrentTranslatorConfig recurrent_translator_config(const std::string& text) {
  return config_json::config_of<RecurrentTranslatorConfig>(text, recurrent_operation);
}
ConvolutionalTranslatorConfig convolutional_translator_config(const std::string& text) {
  return config_json::config_of<ConvolutionalTranslatorConfig>(text, convolutional_operation);
}

}  // namespace orrery::nn
