// Chapter 7. Decoders one step at a time: what they keep between tokens, and the next positions computed from it.
//
// The layers are those of nn/models/stack.h, but they are given only the new positions. Each attention has a state of
// its own for the earlier ones, such as a cache of keys and values (nn/attention/key_value_cache.h). The encoder's
// output never changes, so cross-attention projects it only once. The logits are those of the whole sequence except for
// rounding (the tests allow 1e-5 of the largest in f32, 1e-12 in f64), and the tokens are the same. A state belongs to
// its caller. A copy shares its memory, so continue with only one of the two.
//   NoGradient nothing_recorded;
//   DecoderState state = decoder_state(model, memory, memory_mask, max_len, source);
//   Variable logits = next_logits(model, tokens, state);   // tokens [B, n] -> logits [B, n, K]
// Shapes: tokens i32 [B, n], which follow those read so far; y [B, n, d_model].
#pragma once

#include "nn/models/transformer.h"

namespace orrery::nn {

/// The state of a Transformer's decoder, or of a model without an encoder.
struct DecoderState {
  std::vector<AttentionState> self_attn{};  // of each layer
  std::vector<AttentionState> memory{};     // of each layer that attends to the encoder's output
  Tensor positions{};                       // a Transformer's, [max_len, d_model]
  i64 max_len;                              // positions that there is room for
  Dtype dtype;                              // of the model
  i64 length = 0;                           // positions read so far
  std::optional<CopySource> copied{};       // if words can be copied

  /// Sequence i becomes what sequence `chosen[i]` was. Errors: none is chosen; a number that is not a sequence's.
  void choose(std::span<const i64> chosen);
};

/// The state before the first token: one sequence for each row of `memory`, for up to `max_len` tokens. A model that
/// copies words needs their `source`. Error: more tokens than the model's positions.
DecoderState decoder_state(const Transformer& model, const Variable& memory, const Mask& memory_mask, i64 max_len,
                           const Tensor& source = {});
/// The same for B sequences of a model without an encoder.
DecoderState decoder_state(const CausalModel& model, i64 B, i64 max_len);
/// The decoder's output at the next n positions, for `next_logits`. Errors: more positions than the state has room
/// for; the state of a model with other layers or heads; a call that would be recorded. After an error the state is as
/// before.
Variable next_positions(const Transformer& model, const Tensor& tokens, DecoderState& state);
/// The same for a model without an encoder, whose output is for `model.head`.
Variable next_positions(const CausalModel& model, const Tensor& tokens, DecoderState& state);
/// The logits of the tokens that may follow each of these, [B, n, K]. Errors: those of `next_positions`.
Variable next_logits(const Transformer& model, const Tensor& tokens, DecoderState& state);

}  // namespace orrery::nn
