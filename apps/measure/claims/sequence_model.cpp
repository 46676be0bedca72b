// Chapter 9. The tiny model for experiments: its parts, and what replaces them.
#include "apps/measure/claims/sequence_model.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"

namespace orrery::claims {
namespace {

// Takes the division by sqrt(d_k) back: queries sqrt(d_k) times as long.
struct Unscaled : nn::QueryKeyMap {
  Variable queries(const Variable& Q, i64) const override { return Q * std::sqrt(static_cast<double>(Q.size(-1))); }
  Variable keys(const Variable& K, i64) const override { return K; }
  void visit(nn::Visitor&) override {}
};

// A learned number for each head and distance. Distances of `reach` or more share one.
struct DistanceBias : nn::ScoreBias {
  static constexpr i64 reach = 8;
  Variable weight;  // [2 reach + 1, h]: from `reach` positions before the query to `reach` after it

  explicit DistanceBias(i64 num_heads) : weight(parameter(zeros({2 * reach + 1, num_heads}))) {}
  Variable operator()(i64 n, i64 m, Dtype) const override {
    Tensor rows = arange(n + m - 1);  // entry e is for keys e - m + 1 positions after the query
    for (i64 e = 0; e < rows.count(); ++e)
      rows.set(e, static_cast<double>(std::clamp(e - m + 1, -reach, reach) + reach));
    return permute(embedding(weight, rows), {1, 0});
  }
  void visit(nn::Visitor& v) override { v("weight", weight); }
};

}  // namespace

SequenceModel::SequenceModel(const SequenceModelConfig& config, Rng& rng)
    : mask(config.mask),
      embedding(config.symbols, config.layer.d_model, rng),
      encoder(config.num_layers, config.layer.norm_first, config.layer, rng),
      generator(config.layer.d_model, config.symbols, rng) {
  if (config.order == Order::sinusoidal)
    positions.emplace(nn::Positions::sinusoidal, config.max_len, config.layer.d_model, rng);
  if (config.order == Order::learned)
    positions.emplace(nn::Positions::learned, config.max_len, config.layer.d_model, rng);
  for (nn::EncoderLayer& layer : encoder.layers) {
    auto& attention = layer.self_attn.as<nn::MultiHeadAttention>();
    if (!config.scaled) attention.query_key_map = Unscaled();
    if (config.order == Order::distance) attention.score_bias = DistanceBias(config.layer.num_heads);
  }
  name_parameters();
}

Variable SequenceModel::operator()(const Tensor& ids, nn::Pass& pass) const {
  const Variable x = embedding(ids) * std::sqrt(static_cast<double>(embedding.weight.size(1)));
  return generator(encoder(positions ? (*positions)(x) : x, mask, pass));
}

void SequenceModel::visit(nn::Visitor& v) {
  v("embedding", embedding);
  v("positions", positions);
  v("encoder", encoder);
  v("generator", generator);
}

}  // namespace orrery::claims
