// Chapter 6. Mask: which query may attend to which key.
//
// Paper, section 3.2.3: "We need to prevent leftward information flow in the decoder to preserve the auto-regressive
// property. We implement this inside of scaled dot-product attention by masking out (setting to -inf) all values in the
// input of the softmax which correspond to illegal connections." A mask is a type and not a tensor of booleans, so that
// true cannot be mistaken: true always means "may attend".
// Read next: autograd/ops/attention.cpp
#pragma once

#include <ostream>
#include <vector>

#include "core/tensor.h"

namespace orrery {

/// A rule over (batch b, head h, query i, key j). Made of causal, padding and free parts, joined with `&`: every part
/// must allow. A mask keeps copies: changing the tensors it was made of does not change it.
class Mask {
 public:
  /// Everything may attend to everything.
  Mask() = default;
  /// Query i of n sees key j of m where j <= i + m - n: with n = m, itself and what came before.
  static Mask causal();
  /// Batch row b sees only its first lengths[b] keys, at most all; i32 [B]. What stands behind them reaches nobody.
  static Mask padding(const Tensor& lengths);
  /// Where `allow` is not 0: i32 of shape [n, m], [B, n, m] or [B, h, n, m]; axes of size 1 repeat.
  static Mask allow(const Tensor& allow);
  /// Allowed by both.
  friend Mask operator&(const Mask& a, const Mask& b);

  bool is_causal() const { return causal_; }
  bool has_padding() const { return lengths_.defined(); }
  /// True when some key is allowed by nothing but a table, so that rows have to be looked at key by key.
  bool has_table() const { return !tables_.empty(); }
  /// Keys of batch row b that padding leaves, of m.
  i64 length(i64 b, i64 m) const;
  /// Keys [0, limit) are all that query i of n may see of m keys in batch row b, tables apart.
  i64 limit(i64 b, i64 i, i64 n, i64 m) const;
  /// The same for queries [begin, end).
  void limits(i64 b, i64 begin, i64 end, i64 n, i64 m, i32* limit) const;
  bool allowed(i64 b, i64 h, i64 i, i64 j, i64 n, i64 m) const;
  /// Errors if a part does not fit scores of shape [B, h, n, m].
  void check_fits(i64 B, i64 h, i64 n, i64 m) const;
  /// The same for the padding alone: one length for each batch row, none beyond m.
  void check_padding_fits(i64 B, i64 m) const;

  friend std::ostream& operator<<(std::ostream& out, const Mask& mask);

 private:
  bool table_allows(i64 b, i64 h, i64 i, i64 j) const;

  bool causal_ = false;
  Tensor lengths_;              // i32 [B]
  std::vector<Tensor> tables_;  // i32 [B or 1, h or 1, n or 1, m or 1]
};

/// Whether what stands in x [B, m, d] behind the padding lengths of `mask` is finite and no larger than 1e30: 0 times
/// it, and times what products make of it, is 0 then.
bool padding_is_moderate(const Tensor& x, const Mask& mask);

/// Lengths for `Mask::padding` from token ids [B, T]: the position after the last id that is not `pad_id`.
Tensor lengths_of(const Tensor& ids, i32 pad_id);

}  // namespace orrery
