// Chapter 7. Sampling: the next token is drawn at random, from all tokens or from the likeliest ones.
//
//   p_k = e^{logit_k / temperature} / sum_l e^{logit_l / temperature}
// A temperature below 1 sharpens the distribution, one above 1 flattens it; at 0 the likeliest token is taken. Top-k
// (Fan et al. 2018) keeps the k likeliest tokens. Top-p, or nucleus sampling (Holtzman et al. 2020), keeps the
// fewest likeliest tokens whose probabilities add up to at least p: few where the model is sure, many where it is not.
// The probabilities that are left are scaled to add up to 1. The temperature is applied first, then top-k, then top-p.
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
/// The tokens that may be drawn for logits [K]; their probabilities add up to 1. A logit of -infinity excludes its
/// token. With temperature 0, with top_p below 1, or with a top_k that leaves out some of the others, the likeliest
/// comes first (the smaller id if two are equal); otherwise they are in the order of their ids. Errors: options out of
/// range; a logit that is NaN or infinity; no token left.
std::vector<Candidate> candidates(const Tensor& logits, const SamplingOptions& options);

/// Draws one of the candidates with one draw from `rng`. Temperature 0 needs no draw.
i32 sample(const Tensor& logits, const SamplingOptions& options, Rng& rng);

}  // namespace orrery::nn
