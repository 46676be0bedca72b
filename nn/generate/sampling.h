// Chapter 7. Sampling: the next token drawn by chance, from all that the model thinks possible or from the best of it.
//
//   p_k = e^{logit_k / temperature} / sum_l e^{logit_l / temperature}
// A temperature below 1 sharpens, above 1 flattens; at 0 the likeliest token is taken. Top-k (Fan et al. 2018) keeps
// the k likeliest tokens; top-p, or nucleus sampling (Holtzman et al. 2020), the fewest likeliest ones whose
// probabilities together reach p, so that few are kept where the model is sure and many where it is not. What is left
// is drawn from in proportion. First the temperature, then top-k, then top-p.
// Serves: nn/generate/decoding.h
#pragma once

#include <vector>

#include "core/random.h"
#include "core/tensor.h"

namespace orrery::nn {

struct SamplingOptions {
  double temperature = 1;  ///< 0 and above
  i64 top_k = 0;           ///< 0 keeps all
  double top_p = 1;        ///< in (0, 1]; 1 keeps all
};

/// Errors: options out of range.
void check_options(const SamplingOptions& options);

/// A token and the probability with which it is drawn.
struct Candidate {
  i32 token;
  double probability;
};
/// What may be drawn for logits [K], probabilities of sum 1: where some tokens are left out, likeliest first (of equals
/// the smaller id); else in the order of their ids.
/// A logit of -infinity bans its token. Errors: options out of range; a logit that is NaN or infinity; no token left.
std::vector<Candidate> candidates(const Tensor& logits, const SamplingOptions& options);

/// One of the candidates, by one draw from `rng`; none is made at temperature 0.
i32 sample(const Tensor& logits, const SamplingOptions& options, Rng& rng);

}  // namespace orrery::nn
