// Chapter 0. How large the task is, and how large the model.
// Question: could the model learn all rows by heart? How many numbers does it have for that?
// Answer: there are 13^10 rows, far more than any training sees, and the model has 170,512 parameters.
#include <iostream>

#include "nn/nn.h"

using namespace orrery;

int main() {
  constexpr i64 symbols = 13, length = 10, batch = 32, steps = 400;
  i64 rows = 1;
  for (i64 place = 0; place < length; ++place) rows *= symbols;
  std::cout << "different rows of " << length << " symbols out of " << symbols << ": " << rows << '\n'
            << "rows that " << steps << " steps of " << batch << " see: " << steps * batch << '\n';

  Rng rng(1);
  nn::TransformerConfig config{.src_vocab_size = symbols + 3, .tgt_vocab_size = symbols + 3};  // padding, two marks
  config.layer = {.d_model = 64, .num_heads = 4, .d_ff = 128};
  config.num_encoder_layers = config.num_decoder_layers = 2;
  const i64 parameters = nn::Transformer(config, rng).parameter_count();
  std::cout << "parameters of the toy: " << parameters << '\n';
  return parameters == 170512 && rows / (steps * batch) > 1'000'000 ? 0 : 1;
}
