// Chapter 7. A GPT learns a nursery rhyme letter by letter, and recites it.
// Question: what does a decoder without an encoder learn from nothing but a text, and how does it write?
// Answer: it learns which letter comes next, at all positions at once. To write, it draws a letter, appends it, and
//   continues; keys and values of earlier letters are kept. Nearly all its stretches of 12 letters are in the rhyme.
// Read next: core/machine/memory.h
#include <iostream>
#include <set>
#include <vector>

#include "nn/generate/decoding.h"
#include "nn/models/gpt.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

constexpr i64 block = 32, batch = 16, steps = 300, written = 300, stretch = 12;

struct Batch {
  Tensor ids, labels;  // i32 [batch, block]: each label is the token that comes after the id at its place
};

// Blocks that begin anywhere in the text; after its end, the text begins again.
Batch draw_batch(const std::vector<i32>& text, Rng& rng) {
  Batch drawn{Tensor::empty({batch, block}, Dtype::i32), Tensor::empty({batch, block}, Dtype::i32)};
  for (i64 row = 0; row < batch; ++row) {
    const size_t start = static_cast<size_t>(rng.integer(0, std::ssize(text)));
    for (i64 t = 0; t < block; ++t) {
      const size_t at = start + static_cast<size_t>(t);
      drawn.ids(row, t) = text[at % text.size()];
      drawn.labels(row, t) = text[(at + 1) % text.size()];
    }
  }
  return drawn;
}

}  // namespace

int main() {
  const std::string rhyme =
      "This is the house that Jack built. This is the malt that lay in the house that Jack built. "
      "This is the rat that ate the malt that lay in the house that Jack built. "
      "This is the cat that killed the rat that ate the malt that lay in the house that Jack built. ";
  const std::set<char> different(rhyme.begin(), rhyme.end());
  const std::string alphabet(different.begin(), different.end());  // token k stands for alphabet[k]
  std::vector<i32> tokens;
  for (const char letter : rhyme) tokens.push_back(static_cast<i32>(alphabet.find(letter)));

  Rng rng(1);
  nn::Gpt model({.vocab_size = static_cast<i64>(alphabet.size()),
                 .layer = {.d_model = 64, .num_heads = 4, .d_ff = 256, .dropout = 0},
                 .num_layers = 2,
                 .max_len = block},
                rng);
  optim::AdamW adam(model.parameters());
  for (i64 step = 1; step <= steps; ++step) {
    const auto [ids, labels] = draw_batch(tokens, rng);
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
