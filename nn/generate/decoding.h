// Chapter 7. Decoding: from a trained model to sentences.
//
// Paper, section 3: "At each step the model is auto-regressive, consuming the previously generated symbols as
// additional input when generating the next." Greedy decoding takes y_t = argmax_k logits_t[k] until every row has
// ended. Sampling draws y_t from softmax(logits_t) (nn/generate/sampling.h). Each step computes only the new position;
// nn/generate/decoder_state.h keeps the earlier ones.
// Shapes: source i32 [B, S], answer i32 [B, T'].
// Read next: apps/book/ch7/gpt.cpp
#pragma once

#include <functional>

#include "nn/generate/constraints.h"
#include "nn/generate/sampling.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

struct GreedyOptions {
  i32 bos = 1;       ///< the token every target begins with
  i32 eos = 2;       ///< the token that ends one
  i64 max_len = 64;  ///< generate at most this many tokens, `eos` included
  Constraints constraints{};
};

/// The likeliest token at each step: i32 [B, T'] without `bos`, where T' <= max_len is the length of the longest row. A
/// row that ended earlier has its `eos` and then the model's pad_id (`eos` if it has none). If several tokens are
/// equally likely, the smallest id is taken. Nothing is recorded; the encoder runs once. Errors: max_len beyond the
/// model's positions; constraints out of range; logits that are NaN.
Tensor greedy_decode(const Transformer& model, const Tensor& source, const GreedyOptions& options);
/// The same for any model with B sources. `next_logits` reads the newest token of each row, i32 [B, 1], and returns the
/// logits of the tokens that may follow, [B, 1, K]. Rows that have ended get `pad`.
Tensor greedy_decode(i64 B, const std::function<Tensor(const Tensor&)>& next_logits, i32 pad,
                     const GreedyOptions& options);

/// Continues `prompt`, which needs at least one token, by `count` tokens drawn from the model's probabilities. Each
/// token is passed to `on_token` at once, which returns false to stop. When the model's positions are used up, it
/// starts again from the newer half of the tokens, so it always sees at least the last max_len / 2 tokens, as far as
/// there are any. (Dropping only the oldest token would change every key and value of the cache at every token, since
/// positions are learned.) Constraints look at the prompt, too, and at all tokens,
/// whether the model still sees them or not; that takes a time for each token that grows with their number. Errors: an
/// empty prompt, options out of range, a negative count, logits that are NaN; no token is left that the constraints
/// permit.
void generate(const CausalModel& model, const std::vector<i32>& prompt, i64 count, const SamplingOptions& sampling,
              Rng& rng, const std::function<bool(i32)>& on_token, const Constraints& constraints = {});

}  // namespace orrery::nn
