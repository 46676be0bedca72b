// Chapter 7. The rivals one token at a time: what the states of their decoders have in common.
//
// Neither grows with the length of the target. The logits are those of the whole target except for rounding.
//   NoGradient nothing_recorded;
//   RecurrentState state = recurrent_state(model, source);
//   Tensor logits = next_logits(model, tokens, state);        // tokens [R, n] -> logits [R, n, K]
//   choose_rows(state, std::vector<i64>{0, 0, 2});            // row 0 twice, then row 2
// Shapes: source i32 [B, S]; tokens i32 [R, n], which follow those read so far, with R = B until rows are chosen.
#pragma once

#include <span>

#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention_interface.h"
#include "nn/generate/beam_search.h"

namespace orrery {
struct Sample;
}  // namespace orrery

namespace orrery::translate {

/// Rows of the table of proofs: at least one sample of every layer and model of this folder.
const std::vector<Sample>& rival_samples();

/// What every decoder knows of its sources: two tensors [R, S, ...] and the padding, one row for each sequence. The
/// rows are copied only when the list of sources changes: when a source gets several hypotheses, or when beam search is
/// done with a source. A copy costs about as much as one pass of attention over these rows.
struct SourceRows {
  Tensor keys, values;
  Tensor lengths;              ///< i32 [R]; undefined without padding
  std::vector<i64> source_of;  ///< which row of the source each sequence translates

  Mask mask() const { return lengths.defined() ? Mask::padding(lengths) : Mask(); }
};

inline constexpr std::string_view translator_state = "translator state";

/// Keeps the rows that `chosen` names, in its order.
inline void choose_source_rows(SourceRows& source, std::span<const i64> chosen) {
  const i64 rows = static_cast<i64>(source.source_of.size());
  std::vector<i64> source_of;
  for (const i64 row : chosen) {
    check(row >= 0 && row < rows, translator_state, "row ", row, " is not one of ", rows);
    source_of.push_back(source.source_of[static_cast<size_t>(row)]);
  }
  if (source_of == source.source_of) return;  // each sequence translates what it did
  source.keys = nn::chosen_rows(source.keys, chosen);
  source.values = nn::chosen_rows(source.values, chosen);
  if (source.lengths.defined()) source.lengths = nn::chosen_rows(source.lengths, chosen);
  source.source_of = std::move(source_of);
}

inline SourceRows source_rows(const Variable& keys, const Variable& values, const Tensor& source, i32 pad_id) {
  SourceRows rows{keys.value(), values.value(), pad_id < 0 ? Tensor() : lengths_of(source, pad_id), {}};
  for (i64 row = 0; row < source.size(0); ++row) rows.source_of.push_back(row);
  return rows;
}

inline void check_step(const Tensor& tokens, const SourceRows& source) {
  check(!gradients_are_recorded(), translator_state, "is for generation: nothing may be recorded (NoGradient)");
  const i64 R = dims<2>(tokens, "tokens")[0], rows = static_cast<i64>(source.source_of.size());
  check(R == rows, translator_state, "has ", rows, " rows, the tokens have ", R);
}

/// `next_logits` of a model and its state.
template <class Model, class State> Tensor logits_after(const Model& model, const Tensor& tokens, State& state) {
  return next_logits(model, tokens, state);
}

/// A model and its state after reading `source`, for beam search.
template <class Model, class State> class StateDecoder : public nn::StepwiseDecoder {
 public:
  StateDecoder(const Model& model, State state) : model_(model), state_(std::move(state)) {}

  Tensor next_logits(const Tensor& tokens) override {
    const NoGradient nothing_recorded;
    return logits_after(model_, tokens, state_).reshape({tokens.size(0), -1});
  }
  void choose(std::span<const i64> chosen) override { choose_rows(state_, chosen); }

 private:
  const Model& model_;
  State state_;
};

template <class Model, class State> std::unique_ptr<nn::StepwiseDecoder> decoder_of(const Model& model, State state) {
  return std::make_unique<StateDecoder<Model, State>>(model, std::move(state));
}

inline void check_max_len(i64 of_model, i64 max_len) {
  check(max_len > 0 && max_len <= of_model, translator_state, "max_len must be from 1 to ", of_model,
        ", the model's own, not ", max_len);
}

}  // namespace orrery::translate
