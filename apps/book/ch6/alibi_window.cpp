// Chapter 6. ALiBi in a sliding window: distant tokens count less, and those outside the window do not count.
// Question: which came last, a or b? Does the answer still hold in texts eight times as long?
// Answer: without distances the model guesses. "Train Short, Test Long" (Press, Smith, Lewis 2022) adds -slope |j - i|
//   to the scores: no table of positions runs out, and 192 tokens work as well as the 24 of training.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/check/proof.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;
struct Alibi : nn::ScoreBias {
  i64 heads;  // h, with the slopes 2^(-8/h), 2^(-16/h), ..., 1/256 (section 3)
  explicit Alibi(i64 heads) : heads(heads) {}
  Variable operator()(i64 n, i64 m, Dtype dtype) const override {
    Tensor bias = Tensor::empty({heads, n + m - 1}, f64);
    double* entry = bias.write<double>();
    for (i64 k = 1; k <= heads; ++k)  // entry e of a head is for keys e - m + 1 positions after the query
      for (i64 e = 0; e < n + m - 1; ++e) *entry++ = -std::exp2(-8.0 * k / heads) * std::abs(e - m + 1);
    return constant(bias.to(dtype));
  }
  void visit(nn::Visitor&) override {}
};

nn::MultiHeadAttention attention_of(i64 d_model, bool distances, Rng& rng) {
  nn::MultiHeadAttention attention(d_model, 8, rng);
  attention.own_mask = Mask::causal() & Mask::window(16);
  if (distances) attention.score_bias = Alibi(8);
  return attention;
}

// The loss on longer texts: a is 0, b is 1, 2 to 7 are noise; every text begins with a or b.
double tested(bool distances, i64 tested_length) {
  Rng rng(1);
  nn::Embedding embedding(8, 32, rng);
  nn::EncoderLayer layer({.d_model = 32, .num_heads = 8, .d_ff = 64, .dropout = 0}, rng);
  layer.self_attn = attention_of(32, distances, rng);
  optim::Adam adam(layer.parameters());  // the embedding, which is the head's weight too, stays as it is
  for (i64 step = 1, steps = 250;; ++step) {
    const i64 T = step <= steps ? 24 : tested_length;
    const Tensor ids = concat({randint(0, 2, {16, 1}, rng), randint(0, 8, {16, T - 1}, rng)}, 1);
    Tensor last = ids.clone();
    for (i32 *at = last.write<i32>(), *end = at + 16 * T; at != end; ++at) *at = *at > 1 ? at[-1] : *at;
    nn::Pass pass = nn::Pass::training(1, step);
    const Variable y = matmul(layer(embedding(ids), Mask(), pass), embedding.weight, Trans::b);
    if (step > steps) return cross_entropy(y, last).item();
    backward(cross_entropy(y, last));
    adam.step(3e-3);
  }
}

// Query 3's scores for keys 0 to 3 in each of four heads, and its weights, if q k / sqrt(d_k) is 1 for every key.
void by_hand() {
  const Tensor rows = full({4, 4}, 1, f64) + slice(Alibi(4)(4, 4, f64).value(), 1, 0, 4);
  const Tensor weights = softmax(constant(rows)).value();
  std::cout << std::fixed << std::setprecision(4);
  for (i64 k = 0; k < 4; ++k) {
    for (i64 j = 0; j < 4; ++j) std::cout << std::setw(9) << rows(k, j);
    std::cout << "   weights";
    for (i64 j = 0; j < 4; ++j) std::cout << std::setw(8) << weights(k, j);
    std::cout << '\n';
  }
}

int main() {
  by_hand();
  const auto make = [](Rng& rng) { return attention_of(8, true, rng); };
  const auto run = [](const nn::MultiHeadAttention& f, const Variable& x, nn::Pass& p) { return f(x, Mask(), p); };
  const Proof proof = nn::prove("ALiBi in a window", make, run, {{1, 18, 8}});
  const double near = tested(true, 24), far = tested(true, 192), guessed = tested(false, 24);
  std::cout << proof << "\nloss on 24 tokens " << near << ", on 192 " << far << ", a guess " << guessed << '\n';
  return proof && near < 0.06 && far < 0.06 && guessed > 0.12 ? 0 : 1;
}
