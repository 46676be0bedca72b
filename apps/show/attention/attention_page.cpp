// Chapter 9. Writes the data of the attention page as JSON, and the page around them.
#include "apps/show/attention/attention_page.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/program/shipped_files.h"
#include "core/error.h"
#include "core/files/json.h"

namespace orrery {
namespace {

// Appends "[a,b,c]", where item(i) appends element i.
template <class Item> void append_list(std::string& text, i64 count, const Item& item) {
  text += '[';
  for (i64 i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    item(i);
  }
  text += ']';
}

void append_weight(std::string& text, double weight) {
  check(std::isfinite(weight), "attention page", "a weight is not finite");
  text += std::to_string(std::llround(weight * 10'000));
}

// The JSON array [layers][heads][rows][columns]. It is built as text, because it may hold millions of numbers.
std::string weights_json(const ShownAttention& attention) {
  const i64 rows = std::ssize(attention.rows), columns = std::ssize(attention.columns);
  std::string text;
  append_list(text, std::ssize(attention.layers), [&](i64 layer) {
    const Tensor& weights = attention.layers[static_cast<size_t>(layer)];
    check(weights.rank() == 4 && weights.size(0) == 1 && weights.size(2) >= rows && weights.size(3) >= columns,
          "attention page", "weights of shape ", weights.shape(), " do not fit ", rows, " rows and ", columns,
          " columns");
    append_list(text, weights.size(1), [&](i64 head) {
      append_list(text, rows, [&](i64 i) {
        append_list(text, columns, [&](i64 j) { append_weight(text, weights(0, head, i, j)); });
      });
    });
  });
  return text;
}

i64 weights_in(const ShownAttention& attention) {
  i64 heads = 0;
  for (const Tensor& layer : attention.layers) heads += layer.size(1);
  return heads * std::ssize(attention.rows) * std::ssize(attention.columns);
}

// An object as JSON text, with one more field, whose value is already JSON text.
std::string with_field(const Json& object, const std::string& name, const std::string& value) {
  std::string text = json_text(object);
  text.pop_back();
  return text + ",\"" + name + "\":" + value + "}";
}

}  // namespace

AttentionMaps attention_maps(const nn::Transformer& model, const Tensor& source, const Tensor& target) {
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  model(source, target, pass);
  AttentionMaps maps;
  for (const nn::EncoderLayer& layer : model.encoder.layers) maps.encoder.push_back(seen.of(*layer.self_attn));
  for (const nn::DecoderLayer& layer : model.decoder.layers) {
    maps.decoder_self.push_back(seen.of(*layer.self_attn));
    maps.decoder_cross.push_back(seen.of(*layer.multihead_attn));
  }
  return maps;
}

std::vector<ShownAttention> shown_attentions(const AttentionMaps& maps, const std::vector<std::string>& source,
                                             const std::vector<std::string>& input,
                                             const std::vector<std::string>& written) {
  std::vector<ShownAttention> attentions;
  if (!maps.encoder.empty())
    attentions.push_back({.name = "encoder self-attention",
                          .note = "A row is a source token; its columns are the source tokens that it reads.",
                          .rows = source,
                          .columns = source,
                          .layers = maps.encoder});
  if (!maps.decoder_self.empty())
    attentions.push_back({.name = "decoder self-attention",
                          .note = "A row is a token that the decoder has before it; it reads itself and what stands "
                                  "to its left.",
                          .rows = input,
                          .columns = input,
                          .layers = maps.decoder_self,
                          .causal = true});
  attentions.push_back({.name = "cross-attention",
                        .note = "A row is a token at the moment it is written; its columns are the source tokens that "
                                "are read for it.",
                        .rows = written,
                        .columns = source,
                        .layers = maps.decoder_cross});
  return attentions;
}

i64 attention_weights(const nn::TransformerConfig& config, i64 S, i64 T) {
  return config.layer.num_heads * (config.num_encoder_layers * S * S + config.num_decoder_layers * T * (T + S));
}

void AttentionPage::add(const std::string& source, const std::string& target,
                        const std::vector<ShownAttention>& attentions) {
  i64 weights = 0;
  for (const ShownAttention& attention : attentions) weights += weights_in(attention);
  check(has_room(weights), "attention page", "holds at most ", most_pairs, " pairs and ", most_weights, " weights");
  std::string list;
  append_list(list, std::ssize(attentions), [&](i64 i) {
    const ShownAttention& attention = attentions[static_cast<size_t>(i)];
    list += with_field({{"name", attention.name},
                        {"note", attention.note},
                        {"causal", attention.causal},
                        {"rows", attention.rows},
                        {"columns", attention.columns}},
                       "layers", weights_json(attention));
  });
  if (pairs_ > 0) pairs_json_ += ',';
  pairs_json_ += with_field({{"source", source}, {"target", target}}, "attentions", list);
  ++pairs_;
  weights_ += weights;
}

std::string AttentionPage::json() const {
  return json_in_script(with_field({{"title", title_}, {"about", about_}}, "pairs", "[" + pairs_json_ + "]"));
}

std::string AttentionPage::html() const { return html_page("apps/show/attention", json()); }

}  // namespace orrery
