// Chapter 7. Decoders one step at a time: what they keep between tokens, and the next positions computed from it.
//
// The layers are those of nn/models/stack.h, but they are given only the new positions. Attention
// sees the earlier ones through a cache of keys and values (nn/attention/key_value_cache.h). The encoder's output never
// changes, so cross-attention projects it only once. The logits are those of the whole sequence except for rounding
// (the tests allow 1e-5 of the largest in f32, 1e-12 in f64), and the tokens are the same. A state belongs to its
// caller. A copy shares its memory, so continue with only one of the two.
//   NoGradient nothing_recorded;
//   DecoderState state = decoder_state(model, memory, memory_mask, max_len);
//   Variable logits = model.generator(next_positions(model, tokens, state));   // tokens [B, n] -> logits [B, n, K]
// Shapes: tokens i32 [B, n], which follow those read so far; y [B, n, d_model].
#pragma once

#include "nn/models/gpt.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

/// The state of a Transformer's decoder.
struct DecoderState {
  std::vector<KeyValueCache> self_attn;  // of each layer
  std::vector<KeyValueCache> memory;     // of each layer: keys and values of the encoder's output
  Mask memory_mask;
  Tensor positions;  // [max_len, d_model]

  /// Positions read so far.
  i64 length() const { return self_attn.empty() ? 0 : self_attn[0].length; }
  /// Room in every cache for n more positions; `next_positions` does this itself.
  void make_room(i64 n);
  /// Sequence i becomes what sequence `chosen[i]` was. Errors: those of KeyValueCache::choose.
  void choose(std::span<const i64> chosen);
};

/// The state before the first token: one sequence for each row of `memory`, for up to `max_len` tokens. Its caches grow
/// when they are full. `choose` may continue up to `beam` sequences for each row. Errors: more tokens than the model's
/// positions; a beam below 1.
DecoderState decoder_state(const Transformer& model, const Variable& memory, const Mask& memory_mask, i64 max_len,
                           i64 beam = 1);
/// The decoder's output at the next n positions, for `model.generator`. Errors: more positions than the state has room
/// for; the state of a model with other layers or heads; a call that would be recorded. After an error the state is as
/// before.
Variable next_positions(const Transformer& model, const Tensor& tokens, DecoderState& state);

/// The state of a GPT.
struct GptState {
  std::vector<KeyValueCache> layers;

  i64 length() const { return layers.empty() ? 0 : layers[0].length; }
};

/// The same for a GPT, whose output is for `model.head`.
GptState gpt_state(const Gpt& model, i64 B, i64 max_len);
Variable next_positions(const Gpt& model, const Tensor& tokens, GptState& state);

}  // namespace orrery::nn
