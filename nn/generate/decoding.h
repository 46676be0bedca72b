// Chapter 7. Decoding: from a trained model to sentences.
//
// Paper, section 3: "At each step the model is auto-regressive [10], consuming the previously generated symbols as
// additional input when generating the next." Greedy: y_t = argmax_k logits_t[k], until every row has ended; or y_t
// drawn from softmax(logits_t) (nn/generate/sampling.h). Each step computes the new position alone: nn/generate/decoder_state.h keeps the
// others.
// Shapes: source i32 [B, S], answer i32 [B, T'].
// Read next: apps/examples/ch7_gpt.cpp
#pragma once

#include <functional>

#include "nn/generate/sampling.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

struct GreedyOptions {
  i32 bos = 1;       ///< the token every target begins with
  i32 eos = 2;       ///< the token that ends one
  i64 max_len = 64;  ///< tokens to generate at most, `eos` included
};

/// The likeliest token at each step: i32 [B, T'], without `bos`, T' <= max_len as long as the longest row. A row that
/// ended holds its `eos` and then the model's pad_id (`eos` if it has none). Nothing is recorded; the encoder runs
/// once. Equal scores go to the smaller id. Errors: max_len beyond the model's positions; logits that are NaN.
Tensor greedy_decode(const Transformer& model, const Tensor& source, const GreedyOptions& options);

/// Continues `prompt`, at least one token, by `count` tokens drawn from what the model gives, and hands each to
/// `on_token` as soon as it is there; false stops. When the model's positions are used up it starts again from the
/// newer half of them, so that it always sees the last max_len / 2 tokens at least, as far as there are any. (Positions
/// are learned, so that to drop the oldest token alone would change every key and value of the cache, at every token.)
/// Errors: an empty prompt, options out of range, a negative count, logits that are NaN.
void generate(const Gpt& model, const std::vector<i32>& prompt, i64 count, const SamplingOptions& sampling, Rng& rng,
              const std::function<bool(i32)>& on_token);

}  // namespace orrery::nn
