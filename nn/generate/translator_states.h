// Chapter 7. The recurrent and the convolutional translator one token at a time: what they keep between tokens.
//
// A recurrent decoder keeps one state for each row, and reads the annotations of the source again at each step. A
// convolutional one keeps, for each layer, the inputs of the last width - 1 positions. Neither grows with the length of
// the target. The logits are those of the whole target except for rounding.
//   NoGradient nothing_recorded;
//   RecurrentState state = recurrent_state(model, source);
//   Tensor logits = next_logits(model, tokens, state);        // tokens [R, n] -> logits [R, n, K]
//   choose_rows(state, std::vector<i64>{0, 0, 2});            // row 0 twice, then row 2
// Shapes: source i32 [B, S]; tokens i32 [R, n], which follow those read so far, with R = B until rows are chosen.
#pragma once

#include <span>

#include "nn/generate/beam_search.h"
#include "nn/models/convolutional_translator.h"
#include "nn/models/recurrent_translator.h"

namespace orrery::nn {

/// What every decoder knows of its sources: two tensors [R, S, ...] and the padding, one row for each sequence. The
/// rows are copied only when the list of sources changes: when a source gets several hypotheses, or when beam search is
/// done with a source. A copy costs about as much as one pass of attention over these rows.
struct SourceRows {
  Tensor keys, values;
  Tensor lengths;              ///< i32 [R]; undefined without padding
  std::vector<i64> source_of;  ///< which row of the source each sequence translates

  Mask mask() const { return lengths.defined() ? Mask::padding(lengths) : Mask(); }
};

/// The state of a RecurrentTranslator's decoder.
struct RecurrentState {
  SourceRows source;  ///< keys [R, S, A] and annotations [R, S, 2 E]
  Tensor state;       ///< s [R, H]
};
/// The state before the first token.
RecurrentState recurrent_state(const RecurrentTranslator& model, const Tensor& source);
/// Logits [R, n, K] of the tokens that may follow each of `tokens`. Errors: a call that would be recorded; another
/// number of rows than the state has.
Tensor next_logits(const RecurrentTranslator& model, const Tensor& tokens, RecurrentState& state);
/// Row i becomes what row chosen[i] was. Errors: no such row.
void choose_rows(RecurrentState& state, std::span<const i64> chosen);

/// The state of a ConvolutionalTranslator's decoder.
struct ConvolutionalState {
  SourceRows source;           ///< keys and values [R, S, d_embedding]
  std::vector<Tensor> inputs;  ///< of each layer: its inputs at the last width - 1 positions, [R, width - 1, d_hidden]
  i64 length = 0;              ///< positions read so far
};
// As above. Errors of `next_logits` also: more positions than the model has.
ConvolutionalState convolutional_state(const ConvolutionalTranslator& model, const Tensor& source);
Tensor next_logits(const ConvolutionalTranslator& model, const Tensor& tokens, ConvolutionalState& state);
void choose_rows(ConvolutionalState& state, std::span<const i64> chosen);

/// Their decoders for beam search, after reading `source`, as for a Transformer (nn/generate/beam_search.h). They refer
/// to `model`. They have room for any number of hypotheses. Error: max_len beyond the model's.
std::unique_ptr<StepwiseDecoder> stepwise_decoder(const RecurrentTranslator& model, const Tensor& source, i64 max_len,
                                                  i64 beam);
std::unique_ptr<StepwiseDecoder> stepwise_decoder(const ConvolutionalTranslator& model, const Tensor& source,
                                                  i64 max_len, i64 beam);

}  // namespace orrery::nn
