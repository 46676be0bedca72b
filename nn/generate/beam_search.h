// Chapter 7. Beam search: the likeliest sentence that can be found, by keeping several beginnings at each step.
//
// Greedy decoding takes the likeliest token at each step, although a less likely one may begin a likelier sentence.
// Beam search keeps the `beam` likeliest beginnings, the hypotheses. At each step it extends each of them by each token
// and orders the results by their log-probabilities. Of the first `beam` results, those that end with `eos` are
// finished. The first `beam` of the others are extended next. With a beam of 1 this is greedy decoding.
//
// Each token makes a sentence less likely, so log-probabilities alone favour short ones. Finished hypotheses are
// therefore compared by
//   score(Y) = log p(Y) / |Y|^alpha                     log p(Y) = sum over t of log p(y_t | y_1 ... y_{t-1})
// where |Y| counts `eos` and alpha is the `length_penalty`; 1 gives the mean over tokens. This is the form of fairseq
// (Ott et al. 2019). The paper, section 6.1: "We used beam search with a beam size of 4 and length penalty
// alpha = 0.6", that is, in the form of Wu et al. 2016, section 7, score(Y) = log p(Y) / ((5 + |Y|) / 6)^alpha, which
// differs less between short lengths. The same section: "We set the maximum output length during inference to input
// length + 50, but terminate early when possible".
//
// A source is done as soon as `beam` of its hypotheses are finished, or when no unfinished one can reach the best score
// any more: log p cannot grow, and |Y| is at most the limit. A source that is done leaves the batch. For a list of the
// n best, the n-th best score is what none of them can reach.
// Shapes: source i32 [B, S]; R hypotheses of all sources together, logits [R, K].
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "nn/generate/constraints.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

/// A model that writes several sequences at once, one token at a time: what beam search needs of it.
class StepwiseDecoder {
 public:
  virtual ~StepwiseDecoder() = default;
  /// Reads the next token of each sequence, i32 [R, 1], and returns the logits of the tokens that may follow, [R, K].
  /// They may differ from log-probabilities by a constant for each row. At first there is one sequence for each source.
  virtual Tensor next_logits(const Tensor& tokens) = 0;
  /// Sequence i becomes what sequence `chosen[i]` was.
  virtual void choose(std::span<const i64> chosen) = 0;
};

struct BeamOptions {
  i64 beam = 4;                     ///< hypotheses kept at each step, at most the size of the vocabulary
  i64 n_best = 1;                   ///< hypotheses that `n_best_search` returns for each source, at most `beam`
  double length_penalty = 1;        ///< alpha, 0 or more
  Constraints constraints{};        ///< prefixes are those of the sources
  i32 bos = 1;                      ///< the token every target begins with
  i32 eos = 2;                      ///< the token that ends one
  i64 max_len = 64;                 ///< generate at most this many tokens, `eos` included
  i64 beyond_source = 50;           ///< and at most this many more than the source has
  std::function<bool()> stopped{};  ///< asked before each step: if it says so, the search ends and returns nothing
};

struct Hypothesis {
  std::vector<i32> tokens;     ///< without `bos`; ends with `eos` unless the limit was reached before
  double log_probability = 0;  ///< of all tokens
  double score = 0;            ///< divided as `length_penalty` says
};

/// The hypothesis with the best score for each row of `source`. If several tokens make equally likely hypotheses, the
/// smallest id comes first. The bits do not depend on the number of threads. Nothing is recorded; the encoder runs
/// once. Errors: options out of range; a length penalty so large that length^alpha overflows; max_len beyond the
/// model's positions; logits that are NaN or infinity.
std::vector<Hypothesis> beam_search(const Transformer& model, const Tensor& source, const BeamOptions& options);

/// The same for any decoder. `limits` has the largest number of tokens for each source; `max_len` and `beyond_source`
/// are not used.
std::vector<Hypothesis> beam_search(StepwiseDecoder& decoder, std::span<const i64> limits, const BeamOptions& options);

/// The `n_best` hypotheses with the best scores for each source, the best first: fewer if the search has not finished
/// as many. Of equal scores the one that was finished first comes first.
std::vector<std::vector<Hypothesis>> n_best_search(StepwiseDecoder& decoder, std::span<const i64> limits,
                                                   const BeamOptions& options);

/// A Transformer's decoder with its state, after reading `source`. It refers to `model`. Error: max_len beyond the
/// model's positions.
std::unique_ptr<StepwiseDecoder> stepwise_decoder(const Transformer& model, const Tensor& source, i64 max_len);
/// A model without an encoder, after reading some tokens: the prompt without its last one, which is the `bos` of the
/// search. It refers to `model`. Error: max_len, which counts these too, beyond the model's positions.
std::unique_ptr<StepwiseDecoder> stepwise_decoder(const CausalModel& model, std::span<const i32> read, i64 max_len);

}  // namespace orrery::nn
