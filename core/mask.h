// Chapter 6. Mask: which query may attend to which key.
//
// Paper, section 3.2.3: "We need to prevent leftward information flow in the decoder to preserve the auto-regressive
// property. We implement this inside of scaled dot-product attention by masking out (setting to -inf) all values in the
// input of the softmax which correspond to illegal connections." A mask is a type and not a tensor of booleans, so that
// true cannot be mistaken: true always means "may attend".
// Read next: autograd/ops/attention.cpp
#pragma once

#include <limits>
#include <ostream>
#include <vector>

#include "core/tensor.h"

namespace orrery {

/// Keys [first, limit) of a sequence; none if they are equal.
struct KeyRange {
  i64 first = 0, limit = 0;
  i64 count() const { return limit - first; }
};

/// How many distances j - i there are between n queries i and m keys j.
inline i64 distances(i64 n, i64 m) { return std::max<i64>(0, n + m - 1); }

/// A rule over (batch b, head h, query i, key j): for each query a range of keys, and tables for what is no range. It
/// is made of parts joined with `&`, which must all allow. It is plain data and keeps copies: changing the tensors it
/// was made of does not change it. Query i of n stands at position i + m - n: the last query beside the last key.
class Mask {
 public:
  /// Everything may attend to everything.
  Mask() = default;
  /// Query i of n sees key j of m where j <= i + m - n: with n = m, itself and what came before.
  static Mask causal();
  /// A sliding window: a query sees its own position, `before` positions before it and `after` behind it. One number
  /// stands for both; Mask::causal() & Mask::window(w) looks back only. "Longformer" (Beltagy, Peters, Cohan 2020).
  static Mask window(i64 before, i64 after);
  static Mask window(i64 reach) { return window(reach, reach); }
  /// Batch row b sees only its first lengths[b] keys, at most all; i32 [B]. What stands behind them reaches nobody.
  static Mask padding(const Tensor& lengths);
  /// Where `allow` is not 0: i32 of shape [n, m], [B, n, m] or [B, h, n, m]; axes of size 1 repeat.
  static Mask allow(const Tensor& allow);
  /// Allowed by both.
  friend Mask operator&(const Mask& a, const Mask& b);

  bool is_causal() const { return after_ == 0; }
  /// True for Mask() alone, whatever the sizes.
  bool allows_all() const { return before_ == unlimited && after_ == unlimited && !has_padding() && !has_table(); }
  bool has_padding() const { return lengths_.defined(); }
  /// True when some key is allowed by nothing but a table, so that rows have to be looked at key by key.
  bool has_table() const { return !tables_.empty(); }
  /// Keys of batch row b that padding leaves, of m.
  i64 length(i64 b, i64 m) const;

  // What every form of attention asks: the keys to go through, and of those the ones to leave out.

  /// The keys that query i of n may see of m in batch row b, but for tables.
  KeyRange range(i64 b, i64 i, i64 n, i64 m) const;
  /// Scores of query i with the keys of `keys` become -infinity where a table hides the key; that of key j is
  /// scores[(j - keys.first) * stride].
  template <class T>
  void hide_by_table(i64 b, i64 h, i64 i, KeyRange keys, T* scores, i64 stride = 1) const {
    for (i64 j = keys.first; j < keys.limit; ++j) {
      if (!table_allows(b, h, i, j)) scores[(j - keys.first) * stride] = -std::numeric_limits<T>::infinity();
    }
  }
  /// Both at once, for one key.
  bool allowed(i64 b, i64 h, i64 i, i64 j, i64 n, i64 m) const;
  /// Errors if a part does not fit scores of shape [B, h, n, m].
  void check_fits(i64 B, i64 h, i64 n, i64 m) const;
  /// The same for the padding alone: one length for each batch row, none beyond m.
  void check_padding_fits(i64 B, i64 m) const;

  friend std::ostream& operator<<(std::ostream& out, const Mask& mask);

 private:
  bool table_allows(i64 b, i64 h, i64 i, i64 j) const;

  static constexpr i64 unlimited = i64{1} << 40;

  i64 before_ = unlimited, after_ = unlimited;  // positions seen on both sides of a query's own
  Tensor lengths_;                              // i32 [B]
  std::vector<Tensor> tables_;                  // i32 [B or 1, h or 1, n or 1, m or 1]
};

/// Whether what stands in x [B, m, d] behind the padding lengths of `mask` is finite and no larger than 1e30: 0 times
/// it, and times what products make of it, is 0 then.
bool padding_is_moderate(const Tensor& x, const Mask& mask);

/// Lengths for `Mask::padding` from token ids [B, T]: the position after the last id that is not `pad_id`.
Tensor lengths_of(const Tensor& ids, i32 pad_id);

}  // namespace orrery
