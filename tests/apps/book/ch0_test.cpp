// Chapter 0. What the chapter's last task comes to: the same loop learns to copy, the target being the source itself.
#include <doctest/doctest.h>

#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

TEST_CASE("slow: without flip the loop of chapter 0 learns to copy") {
  constexpr i64 words = 9, length = 5, batch = 32, steps = 300, exam = 50;
  constexpr i32 pad = 0, bos = 1, eos = 2;
  Rng rng(1);
  nn::Transformer model({.src_vocab_size = words,
                         .tgt_vocab_size = words,
                         .layer = {.d_model = 32, .num_heads = 4, .d_ff = 64},
                         .num_encoder_layers = 1,
                         .num_decoder_layers = 1,
                         .pad_id = pad},
                        rng);
  optim::Adam adam(model.parameters(), {.beta2 = 0.98, .eps = 1e-9});
  for (i64 step = 1; step <= steps; ++step) {
    const Tensor source = randint(3, words, {batch, length}, rng);
    const Tensor target = concat({full({batch, 1}, bos, Dtype::i32), source, full({batch, 1}, eos, Dtype::i32)}, 1);
    nn::Pass pass = nn::Pass::training(1, step);
    const Variable logits = model(source, slice(target, 1, 0, -1), pass);
    backward(cross_entropy(logits, slice(target, 1, 1), {.ignore_index = pad, .label_smoothing = 0.1}));
    optim::clip_grad_norm(adam.parameters(), 1.0);
    adam.step(optim::noam(step, 32, 100) * optim::linear_cooldown(step, steps, steps / 2));
  }
  const Tensor source = randint(3, words, {exam, length}, rng);
  const Tensor answer = nn::greedy_decode(model, source, {.bos = bos, .eos = eos, .max_len = length + 1});
  const Tensor expected = concat({source, full({exam, 1}, eos, Dtype::i32)}, 1);
  REQUIRE(answer.shape() == expected.shape());
  i64 exact = 0;
  for (i64 row = 0; row < exam; ++row) exact += same_bits(answer.rows(row, row + 1), expected.rows(row, row + 1));
  CHECK(exact >= 45);
}
