// Chapter 8. The textbook form of attention on packed products: heads split out, attended and joined again.
#pragma once

#include "core/mask.h"
#include "tests/autograd/ops/fused.h"

namespace orrery::small {

struct AttentionSizes {
  i64 B, h, n, m, d_k, d_v;
  std::vector<Shape> self() const { return {{B, n, h * (2 * d_k + d_v)}}; }
  std::vector<Shape> cross() const { return {{B, n, h * d_k}, {B, m, h * (d_k + d_v)}}; }
};
inline std::ostream& operator<<(std::ostream& out, const AttentionSizes& s) {
  return out << "B " << s.B << " h " << s.h << " n " << s.n << " m " << s.m << " d_k " << s.d_k << " d_v " << s.d_v;
}

/// Columns from `first` on as heads: [B, length, ...] to [B, h, length, d].
inline Variable split_heads(const Variable& packed, i64 first, i64 h, i64 d) {
  const Variable part = slice(packed, 2, first, first + h * d);
  return permute(reshape(part, {part.size(0), part.size(1), h, d}), {0, 2, 1, 3});
}

/// Self-attention on {qkv} and cross-attention on {q, kv}, one operation after another.
inline Variable textbook_attention(const Variables& x, const AttentionSizes& s, const Mask& mask, double p,
                                   const Draw& draw, const Variable& bias = {}) {
  const Variable &q = x[0], &kv = x.back();
  const i64 k_column = x.size() == 1 ? s.h * s.d_k : 0;
  const Variable Q = split_heads(q, 0, s.h, s.d_k), K = split_heads(kv, k_column, s.h, s.d_k),
                 V = split_heads(kv, k_column + s.h * s.d_k, s.h, s.d_v);
  const Variable y = attention(Q, K, V, mask, {.bias = bias, .p = p, .draw = draw}).output;
  return reshape(permute(y, {0, 2, 1, 3}), {q.size(0), q.size(1), s.h * s.d_v});
}

/// A table for every batch row and head, in which every fourth query sees nothing.
inline Mask sparse_table(const AttentionSizes& s) {
  Rng rng(8);
  Tensor table = randint(0, 2, {s.B, s.h, s.n, s.m}, rng);
  for (i64 row = 0; row < s.B * s.h * s.n; row += 4) std::fill_n(table.write<i32>() + row * s.m, s.m, 0);
  return Mask::allow(table);
}

/// Every kind of mask, and all of them together.
inline std::vector<Mask> attention_masks(const AttentionSizes& s) {
  std::vector<i32> shorter, none(static_cast<size_t>(s.B), 0);
  for (i64 b = 0; b < s.B; ++b) shorter.push_back(static_cast<i32>(s.m * (b + 1) / (s.B + 1)));
  return {Mask(),
          Mask::causal(),
          Mask::padding(shorter),
          Mask::padding(none),
          sparse_table(s),
          Mask::causal() & Mask::padding(shorter) & sparse_table(s),
          Mask::window(2, 3),
          Mask::window(3) & Mask::causal() & Mask::padding(shorter),
          Mask::window(0, 4) & sparse_table(s),
          Mask::window(2, 1) | Mask::global(2),
          Mask::causal() & Mask::padding(shorter) & (Mask::window(3) | Mask::global(1) | sparse_table(s))};
}

/// The same rule as a table alone.
inline Mask as_table(const Mask& mask, const AttentionSizes& s) {
  Tensor table = Tensor::empty({s.B, s.h, s.n, s.m}, Dtype::i32);
  i32* to = table.write<i32>();
  for (i64 at = 0; at < table.count(); ++at) {
    const i64 row = at / s.m;
    to[at] = mask.allowed(row / (s.h * s.n), row / s.n % s.h, row % s.n, at % s.m, s.n, s.m) ? 1 : 0;
  }
  return Mask::allow(table);
}

/// Rules for long sequences that hide whole blocks of keys, in the middle as well.
inline std::vector<Mask> sparse_masks(const AttentionSizes& s) {
  const std::vector<i32> shorter(static_cast<size_t>(s.B), static_cast<i32>(s.m - 30));
  const Mask longformer = Mask::window(20) | Mask::global(2);
  return {longformer, Mask::causal() & longformer & Mask::padding(shorter),
          Mask::window(10) | (Mask::global(140) & sparse_table(s)), as_table(longformer, s)};
}

}  // namespace orrery::small
