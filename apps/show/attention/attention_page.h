// Chapter 9. A page that shows what the heads of a model attend to: for each sentence pair, each attention, layer and
// head a heatmap, with its tokens on both axes.
//
// The weights are those of the model's own forward pass. The page holds each as a whole number of ten-thousandths.
#pragma once

#include <string>
#include <vector>

#include "nn/models/transformer.h"

namespace orrery {

/// Attention weights [B, h, n, m] of each layer.
struct AttentionMaps {
  std::vector<Tensor> encoder{};        ///< [B, h, S, S]
  std::vector<Tensor> decoder_self{};   ///< [B, h, T, T]
  std::vector<Tensor> decoder_cross{};  ///< [B, h, T, S]
};
/// Those of one pass without dropout over source i32 [B, S] and target i32 [B, T].
AttentionMaps attention_maps(const nn::Transformer& model, const Tensor& source, const Tensor& target);

/// One attention of a model for one pair: row i of a head says how much of each column flows into token i.
struct ShownAttention {
  std::string name;                        ///< "cross-attention"
  std::string note;                        ///< what a row and a column are
  std::vector<std::string> rows, columns;  ///< tokens
  std::vector<Tensor> layers;              ///< [1, h, n, m] each; beyond the rows and the columns there is padding
  bool causal = false;                     ///< a row sees no column after its own
};

/// The attentions of a translation: those of the encoder and the decoder, as far as the model has them, and the
/// cross-attention. `input` is what the decoder reads, `written` what it writes after each of these tokens.
std::vector<ShownAttention> shown_attentions(const AttentionMaps& maps, const std::vector<std::string>& source,
                                             const std::vector<std::string>& input,
                                             const std::vector<std::string>& written);
/// How many weights a Transformer computes for S source tokens and T tokens that its decoder reads.
i64 attention_weights(const nn::TransformerConfig& config, i64 S, i64 T);

class AttentionPage {
 public:
  /// What a page holds at most. A weight takes up to 5 bytes, or 6 if it is 1, so this is a page of about 20 MB: for
  /// 20 pairs, a model of 6 + 6 layers and 8 heads, sentences of 37 tokens.
  static constexpr i64 most_pairs = 20, most_weights = 4'000'000;

  /// `about` says in a sentence what the model is.
  AttentionPage(std::string title, std::string about) : title_(std::move(title)), about_(std::move(about)) {}

  /// Whether another pair with this many weights fits.
  bool has_room(i64 weights) const { return pairs_ < most_pairs && weights <= most_weights - weights_; }
  /// Adds a pair. Errors: it does not fit; labels that do not fit the weights; a weight that is not finite.
  void add(const std::string& source, const std::string& target, const std::vector<ShownAttention>& attentions);
  i64 pairs() const { return pairs_; }

  /// Title and pairs as JSON, and the whole page: one file, which needs no network.
  std::string json() const;
  std::string html() const;

 private:
  std::string title_, about_, pairs_json_;
  i64 pairs_ = 0, weights_ = 0;
};

}  // namespace orrery
