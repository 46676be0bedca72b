// Chapter 6. Mask: which query may attend to which key.
//
// Paper, section 3.2.3: "We need to prevent leftward information flow in the decoder to preserve the auto-regressive
// property. We implement this inside of scaled dot-product attention by masking out (setting to -inf) all values in the
// input of the softmax which correspond to illegal connections." A mask is a type and not a tensor of booleans, so that
// true cannot be mistaken: true always means "may attend".
// Read next: autograd/ops/attention.cpp
#pragma once

#include <algorithm>
#include <array>
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

/// Queries [begin, end) of n in batch row b and head h, which attend to m keys.
struct QuerySpan {
  i64 b, h, begin, end, n, m;
  i64 count() const { return end - begin; }
};

/// How many of some pairs of a query and a key a mask allows.
enum class Seen : u8 { nothing, some, all };

/// Which of up to 128 adjacent queries see which of up to 64 adjacent keys: bit i % 32 of words[i / 32][j] for query i
/// and key j, counted from the first ones.
struct MaskBlock {
  static constexpr i64 queries_of_word = 32, most_queries = 128, most_keys = 64;
  std::array<std::array<u32, most_keys>, most_queries / queries_of_word> words;
};

/// A rule that says which (batch row b, head h, query i, key j) are allowed: for each query a range of keys; for what
/// is not a range, tables, and lists of masks of which one must allow. Masks are combined with `&`, both must allow,
/// and with `|`, one of them must: Mask::window(64) | Mask::global(2). A mask is plain data and copies its tensors, so
/// changing them later does not change the mask. Query i of n is at position i + m - n, so that the last query is at
/// the position of the last key; with more queries than keys, the first ones are before position 0.
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
  /// The first `count` positions, 0 to count - 1, see everything and are seen by all; other pairs are hidden. Beltagy
  /// et al. 2020, section 3.1: "a token with a global attention attends to all tokens across the sequence, and all
  /// tokens in the sequence attend to it." Causal and padding, joined by `&`, hide from them as from others.
  static Mask global(i64 count);
  /// Batch row b sees only its first lengths[b] keys; i32 [B]. Later keys affect no result.
  static Mask padding(const Tensor& lengths);
  static Mask padding(const std::vector<i32>& lengths);
  /// Where `allow` is not 0: i32 of shape [n, m], [B, n, m] or [B, h, n, m]; axes of size 1 repeat. Kept as one bit for
  /// each element.
  static Mask allow(const Tensor& allow);
  /// Allowed by both.
  friend Mask operator&(const Mask& a, const Mask& b);
  /// Allowed by at least one of them. Keys beyond both paddings affect no result.
  friend Mask operator|(const Mask& a, const Mask& b);

  /// True if no query sees a later position.
  bool is_causal() const { return after_ == 0; }
  /// True if no key is hidden, whatever the sizes: Mask(), or a window without limits.
  bool allows_all() const { return is_padding() && !has_padding(); }
  /// True if nothing but padding is hidden, whatever the sizes.
  bool is_padding() const;
  bool has_padding() const { return lengths_.defined(); }
  /// The same mask without ranges and tables.
  Mask padding_only() const { return has_padding() ? padding(lengths_) : Mask(); }
  /// True if `range` is not the whole rule, because of a table or of `|`, so that keys must be checked one by one.
  bool has_table() const { return !tables_.empty() || !one_of_.empty(); }
  /// How many of m keys padding leaves visible in batch row b. Error: a padding mask has no such row.
  i64 length(i64 b, i64 m) const;

  // What every form of attention asks: which keys to process, and which of these to hide.

  /// The keys, of m, that query i of n may see in batch row b; `has_table` says whether some of them may be hidden.
  KeyRange range(i64 b, i64 i, i64 n, i64 m) const { return range({b, 0, i, i + 1, n, m}); }
  /// No query of q sees a key that is not in this range.
  KeyRange range(const QuerySpan& q) const;
  /// How many of at most 64 keys at most 128 queries see. If `some`, `block` says which; the bits of queries and keys
  /// that do not exist are 0 or unset.
  Seen see(const QuerySpan& q, KeyRange keys, MaskBlock& block) const;
  /// Sets scores of the one query of q to -infinity where its key is hidden. The first score belongs to keys.first.
  template <class T> void hide(const QuerySpan& q, KeyRange keys, T* scores) const {
    MaskBlock block;
    for (i64 first = keys.first; first < keys.limit; first += MaskBlock::most_keys) {
      const KeyRange part{first, std::min(keys.limit, first + MaskBlock::most_keys)};
      const Seen seen = see(q, part, block);
      for (i64 j = 0; j < part.count() && seen != Seen::all; ++j) {
        if (seen == Seen::nothing || block.words[0][static_cast<size_t>(j)] == 0)
          scores[first - keys.first + j] = -std::numeric_limits<T>::infinity();
      }
    }
  }
  /// Whether query i may see key j.
  bool allowed(i64 b, i64 h, i64 i, i64 j, i64 n, i64 m) const;
  /// Error: a part does not fit scores of shape [B, h, n, m].
  void check_fits(i64 B, i64 h, i64 n, i64 m) const;
  /// Error: the padding does not have one length for each batch row, or one is larger than m.
  void check_padding_fits(i64 B, i64 m) const;

  friend std::ostream& operator<<(std::ostream& out, const Mask& mask);

 private:
  // One bit for each query and key: bit i % 32 of words[b, h, i / 32, j], so that the bits of adjacent queries, which
  // attention processes together, are read together.
  struct Table {
    Shape shape;   // [B or 1, h or 1, n or 1, m or 1]
    Tensor words;  // i32 [B or 1, h or 1, words for all queries, m or 1]; if n is 1, every bit of a word is the same
    bool allows(i64 b, i64 h, i64 i, i64 j) const;
    // Clears the bits of what the table hides.
    void keep(const QuerySpan& q, KeyRange keys, MaskBlock& block) const;
    // Where the words of queries from i on begin.
    const i32* row(i64 b, i64 h, i64 i) const;
  };

  KeyRange seen_by_all(const QuerySpan& q) const;
  bool same_ranges(const Mask& other) const;
  void keep_one_of(const std::vector<Mask>& masks, const QuerySpan& q, KeyRange keys, MaskBlock& block) const;

  static constexpr i64 unlimited = i64{1} << 40;

  i64 before_ = unlimited, after_ = unlimited;  // positions seen on both sides of a query's own
  i64 global_ = unlimited;                      // positions below it see everything, the others only them
  Tensor lengths_;                              // i32 [B]
  std::vector<Table> tables_;
  std::vector<std::vector<Mask>> one_of_;  // of each list, one mask must allow
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
