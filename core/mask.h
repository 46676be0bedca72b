// Chapter 6. Mask: which query may attend to which key.
//
// Paper, section 3.2.3: "We need to prevent leftward information flow in the decoder to preserve the auto-regressive
// property. We implement this inside of scaled dot-product attention by masking out (setting to -inf) all values in the
// input of the softmax which correspond to illegal connections." A mask is a type and not a tensor of booleans, so that
// true cannot be mistaken: true always means "may attend".
// Read next: autograd/ops/attention.cpp
#pragma once

#include <algorithm>
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

/// How many distances j - i there are between n queries i and m keys j: from -(n - 1) to m - 1. A bias by distance has
/// one entry for each (autograd/ops/attention.h).
inline i64 distances(i64 n, i64 m) { return std::max<i64>(0, n + m - 1); }

/// A rule that says which (batch row b, head h, query i, key j) are allowed: for each query a range of keys, and tables
/// for what is not a range. Masks are combined with `&`: all of them must allow. A mask is plain data and copies its
/// tensors, so changing them later does not change the mask. Query i of n is at position i + m - n, so that the last
/// query is at the position of the last key.
class Mask {
 public:
  /// Everything may attend to everything.
  Mask() = default;
  /// Query i of n sees key j of m where j <= i + m - n: with n = m, itself and what came before.
  static Mask causal();
  /// A sliding window: a query sees its own position, `before` positions before it and `after` positions after it. With
  /// one number, both are equal; Mask::causal() & Mask::window(w) looks back only. "Longformer" (Beltagy, Peters, Cohan
  /// 2020).
  static Mask window(i64 before, i64 after);
  static Mask window(i64 reach) { return window(reach, reach); }
  /// Batch row b sees only its first lengths[b] keys; i32 [B]. Later keys affect no result.
  static Mask padding(const Tensor& lengths);
  static Mask padding(const std::vector<i32>& lengths);
  /// Where `allow` is not 0: i32 of shape [n, m], [B, n, m] or [B, h, n, m]; axes of size 1 repeat.
  static Mask allow(const Tensor& allow);
  /// Allowed by both.
  friend Mask operator&(const Mask& a, const Mask& b);

  /// True if no query sees a later position.
  bool is_causal() const { return after_ == 0; }
  /// True if no key is hidden, whatever the sizes: Mask(), or a window without limits.
  bool allows_all() const { return before_ == unlimited && after_ == unlimited && !has_padding() && !has_table(); }
  bool has_padding() const { return lengths_.defined(); }
  /// The same mask without ranges and tables.
  Mask padding_only() const { return has_padding() ? padding(lengths_) : Mask(); }
  /// True if there is a table, so that keys must be checked one by one.
  bool has_table() const { return !tables_.empty(); }
  /// How many of m keys padding leaves visible in batch row b. Error: a padding mask has no such row.
  i64 length(i64 b, i64 m) const;

  // What every form of attention asks: which keys to process, and which of these to hide.

  /// The keys, of m, that query i of n may see in batch row b, without tables.
  KeyRange range(i64 b, i64 i, i64 n, i64 m) const;
  /// Sets scores of query i to -infinity where a table hides the key. The score of key j is scores[(j - keys.first) *
  /// stride].
  template <class T>
  void hide_by_table(i64 b, i64 h, i64 i, KeyRange keys, T* scores, i64 stride = 1) const {
    for (i64 j = keys.first; j < keys.limit; ++j) {
      if (!table_allows(b, h, i, j)) scores[(j - keys.first) * stride] = -std::numeric_limits<T>::infinity();
    }
  }
  /// Whether query i may see key j, by its range and by the tables.
  bool allowed(i64 b, i64 h, i64 i, i64 j, i64 n, i64 m) const;
  /// Error: a part does not fit scores of shape [B, h, n, m].
  void check_fits(i64 B, i64 h, i64 n, i64 m) const;
  /// Error: the padding does not have one length for each batch row, or one is larger than m.
  void check_padding_fits(i64 B, i64 m) const;

  friend std::ostream& operator<<(std::ostream& out, const Mask& mask);

 private:
  bool table_allows(i64 b, i64 h, i64 i, i64 j) const;

  static constexpr i64 unlimited = i64{1} << 40;

  i64 before_ = unlimited, after_ = unlimited;  // positions seen on both sides of a query's own
  Tensor lengths_;                              // i32 [B]
  std::vector<Tensor> tables_;                  // i32 [B or 1, h or 1, n or 1, m or 1]
};

/// Whether the numbers of x [B, m, d] beyond the padding lengths of `mask` are at most 1e-8 times the square root of
/// the largest number of their dtype: 1.8e11 in f32. What a layer computes from them, such as a norm's sum of squares,
/// is then finite, and 0 times it is 0.
bool padding_is_moderate(const Tensor& x, const Mask& mask);

/// Lengths for `Mask::padding` from token ids [B, T]: the position after the last id that is not `pad_id`.
Tensor lengths_of(const Tensor& ids, i32 pad_id);
/// The padding mask of these lengths. A negative `pad_id` means that there is no padding, and the mask hides nothing.
Mask padding_of(const Tensor& ids, i32 pad_id);

}  // namespace orrery
