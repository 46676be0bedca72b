// Chapter 7. An attention of one's own that generates: linear attention, whose state is two running sums.
#pragma once

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention_interface.h"
#include "nn/layers/linear.h"
#include "nn/models/transformer.h"

namespace orrery {

/// y_i = q_i S_i / q_i z_i with S_i = sum of k_j^T v_j and z_i = sum of k_j over the positions j that i sees
/// (Katharopoulos et al. 2020, arXiv 2006.16236). One head; exp makes q and k positive. The state does not grow.
struct LinearAttention : nn::Attention {
  struct Sums {
    Tensor S;       // [B, d, d + 1]: the last column is z
    bool is_fixed;  // those of a memory

    void choose(std::span<const i64> chosen) { S = nn::chosen_rows(S, chosen); }
  };
  nn::Linear query, key, value;

  LinearAttention(i64 d, Rng& rng) : query(d, d, rng), key(d, d, rng), value(d, d, rng) {}

  Variable keys(const Variable& x, const Mask& mask) const {
    const Variable K = exp(key(x));
    return reshape(zero_padding(reshape(K, {x.size(0), 1, x.size(1), -1}), mask), x.shape());
  }
  Variable values(const Variable& x) const {
    return concat({value(x), constant(full({x.size(0), x.size(1), 1}, 1, x.dtype()))}, -1);
  }
  static Variable divided(const Variable& y) { return slice(y, -1, 0, -1) / slice(y, -1, -1); }

  Variable attend(const Variable& x, const Variable& memory, const Mask& mask) const {
    const i64 n = x.size(1), m = memory.size(1);
    Tensor seen = full({n, m}, 1, x.dtype());
    for (i64 i = 0; i < n; ++i)
      for (i64 j = i + 1; j < m && mask.is_causal(); ++j) seen(i, j) = 0;
    return divided(matmul(matmul(exp(query(x)), keys(memory, mask), Trans::b) * constant(seen), values(memory)));
  }
  Variable self_attention(const Variable& x, const Mask& mask, nn::Pass&) const override { return attend(x, x, mask); }
  Variable cross_attention(const Variable& x, const Variable& memory, const Mask& mask, nn::Pass&) const override {
    return attend(x, memory, mask);
  }

  nn::AttentionState state(i64 B, i64, Dtype dtype) const override {
    const i64 d = query.weight.size(0);
    return Sums{zeros({B, d, d + 1}, dtype), false};
  }
  nn::AttentionState memory_state(const Variable& memory, const Mask& mask) const override {
    return Sums{matmul(keys(memory, mask), values(memory), Trans::a).value(), true};
  }
  Variable next(const Variable& x, nn::AttentionState& state) const override {
    Sums& sums = state.as<Sums>();
    const Variable Q = exp(query(x)), K = keys(x, Mask()), V = values(x);
    std::vector<Variable> y;
    for (i64 i = 0; i < x.size(1); ++i) {
      const auto row = [&](const Variable& of) { return slice(of, 1, i, i + 1); };
      if (!sums.is_fixed) sums.S = sums.S + matmul(row(K), row(V), Trans::a).value();
      y.push_back(matmul(row(Q), constant(sums.S)));
    }
    return divided(concat(y, 1));
  }
  void visit(nn::Visitor& v) override {
    v("query", query);
    v("key", key);
    v("value", value);
  }
};

/// Puts it into every layer of both stacks.
inline void make_linear(nn::Transformer& model, Rng& rng) {
  const i64 d = model.config.layer.d_model;
  for (nn::EncoderLayer& layer : model.encoder.layers) layer.self_attn = LinearAttention(d, rng);
  for (nn::DecoderLayer& layer : model.decoder.layers) {
    layer.self_attn = LinearAttention(d, rng);
    layer.multihead_attn = LinearAttention(d, rng);
  }
}

}  // namespace orrery
