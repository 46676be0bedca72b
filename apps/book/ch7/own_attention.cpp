// Chapter 7. An attention of your own in the paper's encoder: heads that share their keys and values.
// Question: what does it take to put another attention into the layers of a library?
// Answer: a type that derives from nn::Attention, and an assignment. Here each head asks a question of its own, and all
//   look at the same keys and values ("Fast Transformer Decoding", Shazeer 2019). Proven, and it learns to reverse.
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/check/proof.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

struct SharedKeysAttention : nn::Attention {
  i64 h, d;
  nn::Linear query, key_value, output;
  SharedKeysAttention(i64 d_model, i64 h, Rng& rng)
      : h(h), d(d_model / h), query(d_model, h * d, rng), key_value(d_model, 2 * d, rng), output(h * d, d_model, rng) {}
  Variable self_attention(const Variable& x, const Mask& mask, nn::Pass&) const override {
    const i64 B = x.size(0), n = x.size(1);
    const auto [K, V] = split(reshape(key_value(x), {B, 1, n, 2 * d}), d, -1);
    const Variable Q = reshape(query(x), {B, 1, n, h * d});
    std::vector<Variable> heads;  // each asks a question of its own, at the positions that the mask knows
    for (i64 i = 0; i < h; ++i) heads.push_back(attention(slice(Q, -1, i * d, (i + 1) * d), K, V, mask).output);
    return output(reshape(concat(heads, -1), {B, n, h * d}));
  }
  void visit(nn::Visitor& v) override {
    v("query", query);
    v("key_value", key_value);
    v("output", output);
  }
};

int main() {
  const auto make = [](Rng& rng) { return SharedKeysAttention(6, 3, rng); };
  const auto run = [](const SharedKeysAttention& f, const Variable& x, nn::Pass& pass) { return f(x, Mask(), pass); };
  const Proof proof = nn::prove("SharedKeysAttention", make, run, {{2, 4, 6}});

  constexpr i64 words = 10, T = 8, d_model = 32, steps = 300;
  Rng rng(1);
  nn::Embedding embedding(words, d_model, rng);
  nn::PositionalEncoding positions(nn::Positions::learned, T, d_model, rng);
  nn::Encoder encoder(2, false, {.d_model = d_model, .num_heads = 4, .d_ff = 64, .dropout = 0}, rng);
  for (nn::EncoderLayer& layer : encoder.layers) layer.self_attn = SharedKeysAttention(d_model, 4, rng);
  Parameters parameters = encoder.parameters();
  parameters.push_back({"positions", positions.weight});
  parameters.push_back({"embedding", embedding.weight});  // the head's weight, too
  optim::Adam adam(parameters);
  double exact = 0;
  for (i64 step = 1; step <= steps + 1; ++step) {  // the last one is the test
    const Tensor ids = randint(0, words, {100, T}, rng), wanted = flip(ids, 1);
    nn::Pass pass = nn::Pass::training(1, step);
    const Variable y = matmul(encoder(positions(embedding(ids)), Mask(), pass), embedding.weight, Trans::b);
    const Tensor said = argmax(y.value());
    exact = 0;
    for (i64 row = 0; row < 100; ++row) exact += same_bits(said.rows(row, row + 1), wanted.rows(row, row + 1));
    backward(cross_entropy(y, wanted));
    if (step <= steps) adam.step(3e-3);
  }
  std::cout << proof << "\nreversed " << exact << " of 100\n";
  return proof && exact == 100 ? 0 : 1;
}
