// Chapter 7. An ensemble: several models write one sequence together.
//
// Models that differ only in their seed make different mistakes, so the mean of their probabilities is usually better
// than each of them:
//   p(y_t | y_1 ... y_{t-1}, x) = 1/M sum over m of p_m(y_t | y_1 ... y_{t-1}, x)
// Since the logarithm is concave, log p is at least the mean of all log p_m.
// Sutskever et al. 2014, "Sequence to sequence learning with neural networks" (arXiv 1409.3215), table 1, raise the
// BLEU of one LSTM from 30.59 to 34.81 with five. The paper compares itself with ensembles in table 2. An ensemble
// takes as much time and memory as all its models.
#pragma once

#include "nn/generate/beam_search.h"

namespace orrery::nn {

/// A decoder for beam search whose logits are the logarithms of the mean probabilities of `decoders`. All must have
/// read the same sources. Errors: no decoder; in `next_logits`, vocabularies of different sizes.
std::unique_ptr<StepwiseDecoder> ensemble_of(std::vector<std::unique_ptr<StepwiseDecoder>> decoders);

}  // namespace orrery::nn
