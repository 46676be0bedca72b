// Chapter 7. One token through the whole model, step by step.
// Question: what happens to one source token and to one target token inside model(source, target, pass)?
// Answer: each step below is one line of the model's files. Done by hand, step after step, they give the logits that
//   the model gives, to the last digits. Shown: the shape of each value, and its first numbers for the token followed.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/nn.h"

using namespace orrery;
constexpr i64 d_model = 8, h = 2, d_k = 4;

// The first numbers of the vector at position `i` of the second last axis, in head 0, and the shape of the whole.
const Variable& show(const std::string& name, const Variable& x, i64 i) {
  std::cout << std::left << std::setw(28) << name << std::right;
  for (i64 j = 0; j < 4; ++j) std::cout << std::setw(7) << x.value().at(i * x.size(-1) + j);
  std::cout << (x.size(-1) > 4 ? " ...  " : "      ") << x.shape() << '\n';
  return x;
}

Variable cut(const Variable& x) { return permute(reshape(x, {1, x.size(1), h, d_k}), {0, 2, 1, 3}); }
Variable joined(const Variable& x) { return reshape(permute(x, {0, 2, 1, 3}), {1, x.size(2), d_model}); }

// Attention of queries x over keys and values y, shown for position i of x. `kind` tells two attentions apart.
Variable attend(std::string kind, const auto& part, const Variable& x, const Variable& y, const Mask& mask, i64 i) {
  kind = kind.empty() ? "  " : "  " + kind + ": ";
  const auto& layer = part.template as<nn::MultiHeadAttention>();
  const Variable Q = show(kind + "Q, in two heads", cut(layer.in_proj(x, {0, d_model})), i);
  const Variable K = cut(layer.in_proj(y, {d_model, 2 * d_model})),
                 V = cut(layer.in_proj(y, {2 * d_model, 3 * d_model}));
  if (kind == "  cross: ") {
    show("  cross: K of the memory", K, i);
    show("  cross: V of the memory", V, i);
  }
  const Variable scores = show(kind + "scores of head 0", matmul(Q, K, Trans::b) * (1 / std::sqrt(4.0)), i);
  const Variable weights = show(kind + "weights of head 0", masked_softmax(scores, mask), i);
  return show("  heads joined, times W^O", layer.out_proj(joined(matmul(weights, V))), i);
}

Variable feed(const nn::FeedForward& network, const Variable& x, i64 i) {
  return network.linear2(show("  linear1, ReLU", relu(network.linear1(x)), i));
}

Variable embed(const Tensor& ids, const nn::Embedding& table, i64 i) {
  const Variable x = show("embedding * sqrt(d_model)", table(ids) * std::sqrt(8.0), i);
  return show("+ position", x + constant(nn::sinusoidal_table(ids.size(1), d_model)), i);
}

int main() {
  Rng rng(4);
  nn::TransformerConfig config{.src_vocab_size = 10, .tgt_vocab_size = 10};
  config.layer = {.d_model = d_model, .num_heads = h, .d_ff = 16};
  config.num_encoder_layers = config.num_decoder_layers = 1;
  nn::Transformer model(config, rng);
  nn::to(model, f64);
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  const Tensor source = Tensor::of<i32>({1, 5}, {3, 7, 4, 9, 0}), target = Tensor::of<i32>({1, 4}, {1, 5, 8, 6});
  const Mask padding = Mask::padding(Tensor::of<i32>({1}, {4}));
  const nn::EncoderLayer& encoder = model.encoder.layers[0];
  i64 i = 1;
  std::cout << std::fixed << std::setprecision(2) << "the encoder: source token 1, id 7\n";
  Variable x = embed(source, model.src_embed, i);
  x = show("norm1(x + attention)", encoder.norm1(x + attend("", encoder.self_attn, x, x, padding, i)), i);
  x = show("norm2(x + feed-forward)", encoder.norm2(x + feed(encoder.feed_forward, x, i)), i);
  const Variable memory = x;  // one layer alone: its output is the encoder's
  const nn::DecoderLayer& layer = model.decoder.layers[0];
  i = 2;
  std::cout << "\nthe decoder: target token 2, id 8\n";
  x = embed(target, model.tgt_embed, i);
  x = show("norm1(x + self-attention)", layer.norm1(x + attend("self", layer.self_attn, x, x, Mask::causal(), i)), i);
  x = show("norm2(x + cross-attention)", layer.norm2(x + attend("cross", layer.multihead_attn, x, memory, padding, i)),
           i);
  x = show("norm3(x + feed-forward)", layer.norm3(x + feed(layer.feed_forward, x, i)), i);
  const Variable logits = show("generator: logits", model.generator(x), i);
  show("softmax: of the next token", softmax(logits), i);
  const double difference = std::sqrt(sum_of_squares(logits.value() - model(source, target, pass).value()));
  std::cout << "\nmodel(source, target, pass) gives the same logits: " << (difference < 1e-12 ? "yes" : "no") << '\n';
  return difference < 1e-12 ? 0 : 1;
}
