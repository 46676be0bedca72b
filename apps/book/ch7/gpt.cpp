// Chapter 7. A GPT learns a nursery rhyme letter by letter, and recites it.
// Question: what does a decoder without an encoder learn from nothing but a text, and how does it write?
// Answer: it learns which letter comes next, at all positions at once. To write, it draws a letter, appends it, and
//   continues; keys and values of earlier letters are kept. Nearly all its stretches of 12 letters are in the rhyme.
// Read next: core/machine/memory.h
#include <iostream>
#include <set>

#include "nn/generate/decoding.h"
#include "optim/optim.h"

using namespace orrery;

int main() {
  const std::string rhyme =
      "This is the house that Jack built. This is the malt that lay in the house that Jack built. "
      "This is the rat that ate the malt that lay in the house that Jack built. "
      "This is the cat that killed the rat that ate the malt that lay in the house that Jack built. ";
  const std::set<char> different(rhyme.begin(), rhyme.end());
  const std::string alphabet(different.begin(), different.end());  // token k stands for alphabet[k]
  constexpr i64 block = 32, batch = 16, steps = 300, written = 300, stretch = 12;
  const i64 length = static_cast<i64>(rhyme.size());

  Rng rng(1);
  nn::Gpt model({.vocab_size = static_cast<i64>(alphabet.size()),
                 .layer = {.d_model = 64, .num_heads = 4, .d_ff = 256, .dropout = 0},
                 .num_layers = 2,
                 .max_len = block},
                rng);
  optim::AdamW adam(model.parameters());
  for (i64 step = 1; step <= steps; ++step) {
    Tensor ids = Tensor::empty({batch, block}, Dtype::i32), labels = Tensor::empty({batch, block}, Dtype::i32);
    for (i64 row = 0; row < batch; ++row) {
      const i64 start = rng.integer(0, length);
      for (i64 t = 0; t < block; ++t) {  // after its end, the text begins again
        const auto token = [&](i64 at) {
          return static_cast<i32>(alphabet.find(rhyme[static_cast<size_t>(at % length)]));
        };
        ids.write<i32>()[row * block + t] = token(start + t);
        labels.write<i32>()[row * block + t] = token(start + t + 1);
      }
    }
    nn::Pass pass = nn::Pass::training(1, step);
    const Variable loss = model.loss(ids, labels, pass);
    backward(loss);
    adam.step(optim::warmup_cosine(step, 3e-3, 20, steps, 3e-4), 1.0);
    if (step % 100 == 0) std::cout << "step " << step << "  loss " << loss.item() << std::endl;
  }

  std::string text = "T";
  nn::generate(model, {static_cast<i32>(alphabet.find('T'))}, written, {.temperature = 0.5}, rng, [&](i32 token) {
    text += alphabet[static_cast<size_t>(token)];
    return true;
  });
  i64 known = 0;
  for (size_t i = 0; i + stretch <= text.size(); ++i)
    known += (rhyme + rhyme).find(text.substr(i, stretch)) != text.npos;
  const i64 all = written + 1 - stretch + 1;
  std::cout << text << "\n\n" << known << " of " << all << " stretches of 12 letters stand in the rhyme\n";
  return known >= all * 9 / 10 ? 0 : 1;
}
