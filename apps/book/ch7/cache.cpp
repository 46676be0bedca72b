// Chapter 7. The cache: what a GPT keeps, so that each new token costs one position and not all of them.
// Question: what has to be computed again when a token is appended?
// Answer: nothing of what came before. Under a causal mask, earlier positions do not see the new one, so their keys and
//   values stay. Kept in a cache, they give the same logits, and T tokens cost T positions, not T (T + 1) / 2.
#include <cmath>
#include <iostream>

#include "apps/book/measured.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"
#include "nn/models/gpt.h"

using namespace orrery;

int main() {
  constexpr i64 words = 11, T = 16;
  Rng rng(7);
  nn::Gpt model({.vocab_size = words,
                 .layer = {.d_model = 16, .num_heads = 2, .d_ff = 32, .dropout = 0},
                 .num_layers = 2,
                 .max_len = T},
                rng);
  nn::to(model, f64);
  const NoGradient nothing_recorded;
  const Tensor text = randint(0, words, {1, T}, rng);

  nn::DecoderState state = nn::decoder_state(model, 1, T);
  i64 with_cache = 0, without = 0;
  double apart = 0;
  for (i64 t = 0; t < T; ++t) {
    const Tensor token = slice(text, 1, t, t + 1), beginning = slice(text, 1, 0, t + 1);
    const Tensor from_cache = model.head(nn::next_positions(model, token, state)).value();
    nn::Pass pass = nn::Pass::inference();
    const Tensor from_all = slice(model(beginning, pass).value(), 1, -1);
    apart = std::max(apart, std::sqrt(sum_of_squares(from_cache - from_all)));
    with_cache += token.count();
    without += beginning.count();
    if (t == 0 || t == 3 || t == T - 1)
      std::cout << "after token " << t + 1 << ": keys of a layer "
                << state.self_attn[0].as<nn::KeyValueCache>().keys.shape() << ", filled " << state.length
                << "; positions computed " << with_cache << ", without a cache " << without << '\n';
  }
  const nn::GptConfig gpt2 = nn::gpt_preset("gpt2");
  const i64 numbers = 2 * gpt2.num_layers * gpt2.layer.d_model;
  std::cout << "GPT-2 keeps 2 * " << gpt2.num_layers << " * " << gpt2.layer.d_model << " = " << numbers
            << " numbers for each position, " << numbers * bytes_of(f32) << " bytes\n";
  std::cout << "the same logits at every step: " << (apart < 1e-12 ? "yes" : "no") << '\n';

  constexpr i64 long_T = 128;
  nn::Gpt wide({.vocab_size = words,
                .layer = {.d_model = 512, .num_heads = 8, .d_ff = 2048, .dropout = 0},
                .num_layers = 4,
                .max_len = long_T},
               rng);
  const Tensor line = randint(0, words, {1, long_T}, rng);
  nn::DecoderState read = nn::decoder_state(wide, 1, long_T);
  nn::next_positions(wide, slice(line, 1, 0, -5), read);  // the five runs are the last five tokens
  const double cached = book::shortest_ms([&] { nn::next_positions(wide, slice(line, 1, -1), read); });
  nn::Pass pass = nn::Pass::inference();
  const double again = book::shortest_ms([&] { wide(line, pass); });
  std::cout << "measured: the last of " << long_T << " tokens, by a GPT with " << wide.parameter_count() * bytes_of(f32)
            << " bytes of parameters: " << cached << " ms with the cache, " << again << " ms without\n";
  return apart < 1e-12 && with_cache == T && without == T * (T + 1) / 2 ? 0 : 1;
}
