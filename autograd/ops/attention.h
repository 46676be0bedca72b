// Chapter 6. Scaled dot-product attention and its parts, in their textbook forms.
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

class Mask;

/// Softmax of scores [B, h, n, m] over the keys that `mask` allows. All other keys get 0. A row in which no key is
/// allowed is 0. Errors: scores of another number of axes; a mask that does not fit.
Variable masked_softmax(const Variable& scores, const Mask& mask);

/// How attention turns scores into weights, besides softmax and the mask.
struct AttentionWeightOptions {
  Variable bias{};  ///< added to the scores. One with two axes is by distance, [h, n + m - 1] (see `by_distance`)
  double p = 0;     ///< with which weights are dropped out
  Draw draw{};      ///< which ones (core/random.h)
};

/// What attention returns: `output` [B, h, n, d_v], and `weights` [B, h, n, m], the attention weights before dropout.
struct AttentionResult {
  Variable output, weights;
};
/// softmax(Q K^T / sqrt(d_k)) V, step by step as in the paper, section 3.2.1. Q [B, h, n, d_k], K [B, h, m, d_k],
/// V [B, h, m, d_v]. A bias that is not by distance broadcasts to [B, h, n, m]. Errors: shapes or a mask that do not
/// fit; d_k = 0; p outside [0, 1].
AttentionResult attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask,
                          const AttentionWeightOptions& options = {});
/// The same as its definition says it, number by number: for reading, and for tests to compare with. For f64.
struct AttentionByLoops {
  Tensor output, weights;
};
AttentionByLoops attention_by_loops(const Tensor& Q, const Tensor& K, const Tensor& V, const Mask& mask);
/// Expands a bias by distance, [h, n + m - 1], to all pairs of n queries and m keys, [h, n, m]: query i and key j get
/// entry j - i + n - 1. Since the last query is at the position of the last key, entry e belongs to keys that stand
/// e - m + 1 positions after the query.
Variable by_distance(const Variable& bias, i64 n, i64 m);
/// x [B, h, m, d] with 0 in the rows beyond the padding lengths of `mask`, so that their contents never reach a
/// product.
Variable zero_padding(const Variable& x, const Mask& mask);

}  // namespace orrery
