// Chapter 6. Attention: the interface between a layer and its attention, and those of the replaceable parts inside
// MultiHeadAttention.
//
// The layers of encoders, decoders and GPTs hold a Part<Attention> (nn/part.h). MultiHeadAttention is the attention of
// the paper. Your own attention derives from Attention and is assigned to the part:
//   for (nn::EncoderLayer& layer : encoder.layers) layer.self_attn = MyAttention(64, 4, rng);
// It must define self_attention and visit. The other functions, if not defined, throw an error that says so. With
// `state` and `next` it can generate: it keeps what it likes of the positions that it has read, such as keys and values
// (nn/attention/key_value_cache.h), or the running sums of linear attention.
// Positions that the mask pads (of x in self-attention, of memory in cross-attention) reach these functions as zeros if
// they hold NaN, infinity or huge numbers (nn/layers/padding.h).
#pragma once

#include <any>
#include <span>

#include "core/mask.h"
#include "nn/layers/padding.h"
#include "nn/part.h"
#include "nn/pass.h"

namespace orrery::nn {

/// What an attention keeps between the calls of a generation: a value of a type of its own, which can be copied and
/// has a function `void choose(std::span<const i64>)`. A step that fails goes back to a copy from before the step. So
/// `next` replaces the tensors of its state, or writes where the copy does not read.
class AttentionState {
 public:
  template <class S>
  requires requires(S state, std::span<const i64> chosen) { state.choose(chosen); }
  AttentionState(S state) : state_(std::move(state)), choose_(&choose_of<S>) {}

  /// Sequence i becomes what sequence `chosen[i]` was. Errors: none is chosen; there is no such sequence.
  void choose(std::span<const i64> chosen) { choose_(state_, chosen); }
  /// The value, if it is an S; else null.
  template <class S> S* get_if() { return std::any_cast<S>(&state_); }
  /// The value as an S. Error: it is of another type.
  template <class S> S& as() {
    S* const state = get_if<S>();
    check(state != nullptr, "attention state", "is of type ", type_name(state_.type()), ", not ", type_name(typeid(S)));
    return *state;
  }

 private:
  template <class S> static void choose_of(std::any& state, std::span<const i64> chosen) {
    std::any_cast<S&>(state).choose(chosen);
  }

  std::any state_;
  void (*choose_)(std::any&, std::span<const i64>);
};

/// The chosen rows of x along axis 0, one after another, for the `choose` of a state. Errors: no row; no such row.
Tensor chosen_rows(const Tensor& x, std::span<const i64> chosen);

struct Attention : Module {
  /// Self-attention: x [B, n, d_model] to [B, n, d_model]. `pass.recorder` receives weights [B, h, n, n].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass) const {
    return self_attention(with_harmless_padding(x, mask), mask, pass);
  }
  /// Cross-attention: x [B, n, d_model] with memory [B, m, d_model] to [B, n, d_model]; weights [B, h, n, m].
  Variable operator()(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass) const {
    return cross_attention(x, with_harmless_padding(memory, mask), mask, pass);
  }

  /// The attention itself, for layers whose x has come through `with_harmless_padding` already.
  virtual Variable self_attention(const Variable& x, const Mask& mask, Pass& pass) const = 0;
  virtual Variable cross_attention(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass) const;

  // For generation: the same attention, for a few positions after the others. Nothing is recorded, and no dropout is
  // applied.

  /// The state of causal self-attention before the first position of B sequences. It grows when it has no room for more
  /// than `capacity` positions.
  virtual AttentionState state(i64 B, i64 capacity, Dtype dtype) const;
  /// The state of cross-attention to memory [B, m, d_model], of which `mask` says what may be seen.
  virtual AttentionState memory_state(const Variable& memory, const Mask& mask) const;
  /// The attention of the next n positions x [B, n, d_model] of each sequence. In self-attention, the state then has
  /// these positions, too. Error: a state of another attention.
  virtual Variable next(const Variable& x, AttentionState& state) const;
};

// Replaceable parts of MultiHeadAttention, with which self-attention takes positions into account.

/// Changes queries and keys after their projection and before the scores. Rotary positions are an example.
struct QueryKeyMap : Module {
  /// Q of every head, [B, n, h, d_k], at positions first_position, first_position + 1, ...; returns the same shape.
  virtual Variable queries(const Variable& Q, i64 first_position) const = 0;
  /// The same for K.
  virtual Variable keys(const Variable& K, i64 first_position) const { return queries(K, first_position); }
};

/// A bias on the scores of n queries with m keys. The queries are the last n of the m positions.
struct ScoreBias : Module {
  /// Either by distance, [h, n + m - 1], where entry e is for keys e - m + 1 positions after the query; long sequences
  /// are then computed in tiles. Or a shape of another number of axes that broadcasts to [B, h, n, m], such as
  /// [1, n, m]; this takes as much memory as the scores.
  virtual Variable operator()(i64 n, i64 m, Dtype dtype) const = 0;
};

}  // namespace orrery::nn
