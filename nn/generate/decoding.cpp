// Chapter 7. Decoding: one token for every row at a time, until all rows have ended or the limit is reached.
#include "nn/generate/decoding.h"

#include <algorithm>
#include <cmath>

#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"

namespace orrery::nn {
namespace {

Tensor constrained(const Tensor& logits, std::span<const WrittenSequence> written, const Constraints& constraints) {
  const Tensor rows = logits.reshape({std::ssize(written), -1});
  return permitted(penalized(rows, written, constraints), written, constraints, "decoding").reshape(logits.shape());
}

Tensor row_of(const std::vector<i32>& tokens) { return Tensor::of<i32>({1, static_cast<i64>(tokens.size())}, tokens); }

}  // namespace

Tensor greedy_decode(const Transformer& model, const Tensor& source, const GreedyOptions& options) {
  const i64 B = dims<2>(source, "source")[0];
  check(options.max_len > 0 && options.max_len <= model.config.max_len, "greedy_decode", "max_len must be from 1 to ",
        model.config.max_len, ", the model's positions, not ", options.max_len);
  const NoGradient nothing_recorded;
  Pass pass = Pass::inference();
  const Mask source_mask = model.padding(source);
  const i32 pad = model.config.pad_id >= 0 ? model.config.pad_id : options.eos;
  const Variable memory = model.encode(source, source_mask, pass);
  DecoderState state = decoder_state(model, memory, source_mask, options.max_len, source);
  return greedy_decode(
      B, [&](const Tensor& tokens) { return next_logits(model, tokens, state).value(); }, pad, options);
}

Tensor greedy_decode(i64 B, const std::function<Tensor(const Tensor&)>& next_logits, i32 pad,
                     const GreedyOptions& options) {
  check(options.max_len > 0, "greedy_decode", "max_len must be positive, not ", options.max_len);
  options.constraints.check_options("greedy_decode", std::vector<i64>(static_cast<size_t>(B), options.max_len),
                                    options.eos);
  const NoGradient nothing_recorded;
  std::vector<WrittenSequence> rows(static_cast<size_t>(B));  // what constraints look at
  for (size_t b = 0; b < rows.size(); ++b) rows[b].number = b;
  Tensor last = full({B, 1}, options.bos, Dtype::i32);
  std::vector<Tensor> written{Tensor::empty({B, 0}, Dtype::i32)};
  std::vector<bool> ended(static_cast<size_t>(B), false);
  i64 running = B;
  for (i64 length = 0; running > 0 && length < options.max_len; ++length) {
    const Tensor logits = next_logits(last);
    const bool some_nan = std::isnan(sum_of_squares(logits));
    last = argmax(options.constraints.any() ? constrained(logits, rows, options.constraints) : logits);
    i32* token = last.write<i32>();
    for (i64 b = 0; b < B; ++b) {
      // The embedding of the padding that follows an end may hold NaN.
      check(!some_nan || ended[static_cast<size_t>(b)] || !std::isnan(sum_of_squares(logits.rows(b, b + 1))),
            "greedy_decode", "a logit is NaN");
      if (ended[static_cast<size_t>(b)]) {
        token[b] = pad;
      } else if (token[b] == options.eos) {
        ended[static_cast<size_t>(b)] = true;
        --running;
      } else {
        rows[static_cast<size_t>(b)].tokens.push_back(token[b]);
      }
    }
    written.push_back(last);
  }
  return concat(written, 1);
}

void generate(const CausalModel& model, const std::vector<i32>& prompt, i64 count, const SamplingOptions& sampling,
              Rng& rng, const std::function<bool(i32)>& on_token, const Constraints& constraints) {
  check(!prompt.empty(), "generate", "needs a prompt of at least one token");
  check(count >= 0, "generate", "cannot write ", count, " tokens");
  check_options(sampling);
  constraints.check_options("generate", std::vector<i64>{count}, -1);
  const NoGradient nothing_recorded;
  WrittenSequence written{.tokens = prompt};
  Constraints after_prompt = constraints;
  after_prompt.prompt = prompt;
  const size_t most = static_cast<size_t>(model.max_len());
  DecoderState state = decoder_state(model, 1, model.max_len());
  std::vector<i32> context = prompt, unread = prompt;
  if (unread.size() > most) unread.erase(unread.begin(), unread.end() - static_cast<std::ptrdiff_t>(most));
  for (i64 i = 0; i < count; ++i) {
    if (static_cast<size_t>(state.length) + unread.size() > most) {  // start again with the newer half
      state = decoder_state(model, 1, model.max_len());
      unread.assign(context.end() - static_cast<std::ptrdiff_t>(std::max<size_t>(1, most / 2)), context.end());
    }
    const Variable hidden = next_positions(model, row_of(unread), state);
    const Tensor logits = model.head(constant(slice(hidden.value(), 1, -1))).value();
    const Tensor row = logits.reshape({1, model.vocab_size()});
    const i32 token = sample(constrained(row, {&written, 1}, after_prompt).reshape({row.size(1)}), sampling, rng);
    if (!on_token(token)) return;
    if (constraints.any()) written.tokens.push_back(token);
    context.push_back(token);
    if (context.size() > 2 * most) context.erase(context.begin(), context.end() - static_cast<std::ptrdiff_t>(most));
    unread.assign(1, token);
  }
}

}  // namespace orrery::nn
