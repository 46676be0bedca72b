// Chapter 7. What the decoder may see: the whole source, but of the target only the earlier tokens.
// Question: which logits change when token 3 of the target changes, and how does decoding use this?
// Answer: those of rows 3, 4, 5, and no bit of rows 0, 1, 2. So tokens can be written one after another: at each place,
//   greedy decoding writes the token that the model finds likeliest there when it is given the whole answer at once.
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/generate/decoding.h"

using namespace orrery;

int main() {
  constexpr i64 words = 20, T = 6;
  constexpr i32 bos = 1, no_token = -1;
  Rng rng(7);
  nn::Transformer model({.src_vocab_size = words,
                         .tgt_vocab_size = words,
                         .layer = {.d_model = 32, .num_heads = 4, .d_ff = 64},
                         .num_encoder_layers = 2,
                         .num_decoder_layers = 2},
                        rng);
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  const Tensor source = Tensor::of<i32>({1, 5}, {3, 4, 5, 6, 7});
  const Tensor target = Tensor::of<i32>({1, T}, {bos, 8, 9, 10, 11, 12});
  const Tensor changed = Tensor::of<i32>({1, T}, {bos, 8, 9, 13, 11, 12});

  const Tensor before = model(source, target, pass).value().reshape({T, words});
  const Tensor after = model(source, changed, pass).value().reshape({T, words});
  bool as_said = true;
  for (i64 t = 0; t < T; ++t) {
    const bool same = same_bits(before.rows(t, t + 1), after.rows(t, t + 1));
    std::cout << "row " << t << (same ? "  same bits\n" : "  moved\n");
    as_said &= same == (t < 3);
  }

  const Tensor answer = nn::greedy_decode(model, source, {.bos = bos, .eos = no_token, .max_len = T});
  const Tensor read = concat({full({1, 1}, bos, Dtype::i32), slice(answer, 1, 0, -1)}, 1);
  const Tensor likeliest = argmax(model(source, read, pass).value());
  std::cout << "\nwritten token by token  " << answer << "\nlikeliest, all at once  " << likeliest << '\n';
  return as_said && same_bits(answer, likeliest) ? 0 : 1;
}
