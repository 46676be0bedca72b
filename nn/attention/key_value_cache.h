// Chapter 6. KeyValueCache: the keys and values of all earlier positions, so that only the next token is computed.
//
// A decoder writes one token at a time. Earlier tokens do not change, and because of the causal mask neither do their
// keys and values. Without a cache each step would compute all of them again. Paper, section 3: "At each step the model
// is auto-regressive, consuming the previously generated symbols as additional input when generating the next."
// A cache takes h (d_k + d_v) numbers for each position and layer: in f32, 73,728 bytes for each position in the 12
// layers of GPT-2. It is a plain value and belongs to the caller that generates; layers hold nothing between calls. The
// keys of one head are contiguous, and so are its values, so that attention reads memory from one end to the other.
// Beam search continues some sequences several times and gives up others (nn/generate/beam_search.h). So a sequence has
// a slot, and choosing sequences changes their slots only: sequences that continue the same one share its slot. Keys
// and values are copied when something is appended, for the second and further continuations of a sequence.
// Shapes: keys [slots, h, capacity, d_k], values [slots, h, capacity, d_v], of which the first `length` positions are
// filled. B is the number of sequences: as many as `slots` names or, if it is empty, as there are slots.
#pragma once

#include <span>
#include <vector>

#include "core/mask.h"
#include "core/tensor.h"

namespace orrery::nn {

struct KeyValueCache {
  Tensor keys;    // [slots, h, capacity, d_k]
  Tensor values;  // [slots, h, capacity, d_v]
  i64 length = 0;
  std::vector<i64> slots{};  // of each sequence; empty: sequence b has slot b

  i64 capacity() const { return keys.size(2); }
  /// The number of sequences, B.
  i64 sequences() const { return slots.empty() ? keys.size(0) : static_cast<i64>(slots.size()); }
  /// Appends n positions: the last h (d_k + d_v) columns of rows [B, n, columns], keys before values, as in the packed
  /// projections of attention. If there is no room, the capacity doubles. Only slots that no sequence has and positions
  /// beyond `length` are written. Error: a shape or dtype that does not fit.
  void append(const Tensor& rows);
  /// Sequence i becomes what sequence `chosen[i]` was. Errors: none is chosen; a number that is not a sequence's.
  void choose(std::span<const i64> chosen);
};

/// The keys and values of a memory, to which nothing is appended, and what may be seen of them.
struct MemoryCache : KeyValueCache {
  Mask mask;  // batch row b is for slot b
};

/// An empty cache of B sequences, each with a slot.
KeyValueCache key_value_cache(i64 B, i64 num_heads, i64 capacity, i64 d_k, i64 d_v, Dtype dtype);

/// softmax(Q K^T / sqrt(d_k)) V over all positions of a cache, heads side by side: [B, n, h d_v]. The queries are the
/// first h d_k columns of rows [B, n, columns]. With Mask::causal() they are the last n of the positions. A bias on the
/// scores, if there is one, is by distance, [h, n + m - 1] for the m positions of the cache, or [B or 1, h or 1, n, m].
/// Batch row b of the mask is for slot b. Nothing is recorded.
Tensor cached_attention(const Tensor& rows, const KeyValueCache& cache, const Mask& mask, const Tensor& bias = {});

}  // namespace orrery::nn
