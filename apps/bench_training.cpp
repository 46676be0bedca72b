// Chapter 9. A batch as other frameworks get it, and the step.
//
// Read next: apps/stopwatch.h
#include "apps/bench_training.h"

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/clip.h"

namespace orrery {
namespace {

constexpr i32 pad = 0;
constexpr i64 first_word = 3;  // 0, 1 and 2 stand for padding, begin and end
constexpr i64 short_every = 10, short_by = 2;
constexpr double learning_rate = 1e-4, max_norm = 1.0, label_smoothing = 0.1;

// i32 [batch, length], rows 0, 10, 20, ... ending with padding.
Tensor random_tokens(i64 batch, i64 length, i64 vocab_size, Rng& rng) {
  Tensor tokens = randint(first_word, vocab_size, {batch, length}, rng);
  i32* token = tokens.write<i32>();
  for (i64 row = 0; row < batch; row += short_every) std::fill_n(token + (row + 1) * length - short_by, short_by, pad);
  return tokens;
}

}  // namespace

BenchTraining::BenchTraining(const BenchConfig& config, double dropout, i64 seed)
    : seed_(static_cast<u64>(seed)),
      rng_(seed_),
      model_(config.model(dropout), rng_),
      adam_(model_.parameters(), {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9}),
      source_(random_tokens(config.batch, config.source_length, config.vocab_size, rng_)) {
  const Tensor target = random_tokens(config.batch, config.target_length + 1, config.vocab_size, rng_);
  input_ = slice(target, 1, 0, -1);
  gold_ = slice(target, 1, 1);
}

double BenchTraining::pass() {
  nn::Pass pass = nn::Pass::training(seed_, ++steps_begun_);
  // The logits, the largest tensor of all, are nobody's but the loss's.
  const Variable loss =
      cross_entropy(model_(source_, input_, pass), gold_, {.ignore_index = pad, .label_smoothing = label_smoothing});
  backward(loss);
  return loss.item();
}

void BenchTraining::update() {
  adam_.step(learning_rate, max_norm);
}

}  // namespace orrery
