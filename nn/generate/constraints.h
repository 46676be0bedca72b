// Chapter 7. Constraints: which tokens may come next, and which are made less likely, in every way of decoding.
//
// Models that write their likeliest tokens often write the same ones again and again. The repetition penalty of Keskar
// et al. 2019, "CTRL: A Conditional Transformer Language Model for Controllable Generation", section 4.1, discounts the
// scores x of the tokens g that are written already:
//   p_i = e^{x_i / I(i in g)} / sum_j e^{x_j / I(j in g)}     I(true) = theta, I(false) = 1
// They use theta = 1.2 with greedy decoding. Dividing a negative score would make its token likelier, so that one is
// multiplied by theta, as Hugging Face's transformers does. In greedy decoding and sampling x are the model's logits;
// in beam search, as there, they are its log-probabilities: of several models together there are no logits.
// With no_repeat_ngram = n (Paulus et al. 2018, "A Deep Reinforced Model for Abstractive Summarization", with n = 3) a
// token may not come next if it would write an n-gram that is there already. What a model continues, the prompt, counts
// as written. With prefixes, a sequence begins with given tokens. In beam search the penalty changes p, but tokens that
// may not come leave the p of the others as it is.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace orrery::nn {

struct Constraints {
  double repetition_penalty = 1;             ///< theta; 1: none
  i64 no_repeat_ngram = 0;                   ///< n; 0: repeat anything
  std::vector<std::vector<i32>> prefixes{};  ///< what each sequence begins with, before anything is chosen; or none
  std::vector<i32> prompt{};                 ///< what stands before all of them

  bool any() const { return repetition_penalty != 1 || no_repeat_ngram != 0 || !prefixes.empty(); }
  /// Errors of `operation`: numbers out of range; prefixes for another number of sequences than there are `limits`; one
  /// with `eos` in it, or without room for a token after it.
  void check_options(std::string_view operation, std::span<const i64> limits, i32 eos) const;
};

/// A sequence that goes on: its number, and the tokens that are written, the prompt first.
struct WrittenSequence {
  size_t number = 0;
  std::vector<i32> tokens{};
};

/// Logits [R, K] of the tokens that may follow R sequences, as the repetition penalty changes them. Ids that are not
/// tokens of the model do not count. The logits are a copy, unless there is no penalty. Both functions look at every
/// token that is written, in each call.
Tensor penalized(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints);
/// The same with -infinity for tokens that may not come next. Error of `operation`: none is left of those that could.
Tensor permitted(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints,
                 std::string_view operation);

}  // namespace orrery::nn
