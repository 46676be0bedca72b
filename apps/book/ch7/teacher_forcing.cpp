// Chapter 7. Teacher forcing and label smoothing, with numbers.
// Question: how can one pass train every position at once, and what does the smoothed loss ask for?
// Answer: the input is the target without its last token, the labels are the target without its first. Row t of the
//   logits is, to the last digits, what the model says after t + 1 tokens alone. Smoothing asks for 0.92, not for 1.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/models/transformer.h"

using namespace orrery;

namespace {

void print(const std::string& name, const Tensor& row) {
  std::cout << name;
  for (i64 i = 0; i < row.count(); ++i) std::cout << std::setw(9) << row.at(i);
  std::cout << '\n';
}

}  // namespace

int main() {
  constexpr i64 words = 12, T = 5, K = 5;
  Rng rng(7);
  nn::Transformer model({.src_vocab_size = words,
                         .tgt_vocab_size = words,
                         .layer = {.d_model = 16, .num_heads = 2, .d_ff = 32},
                         .num_encoder_layers = 1,
                         .num_decoder_layers = 1},
                        rng);
  nn::to(model, f64);
  nn::Pass pass = nn::Pass::inference();
  const Tensor source = Tensor::of<i32>({1, 3}, {3, 4, 5});
  const Tensor sentence = Tensor::of<i32>({1, T}, {1, 8, 9, 10, 2});  // bos, three words, eos
  const Tensor input = slice(sentence, 1, 0, -1), labels = slice(sentence, 1, 1);
  print("input    ", input);
  print("labels   ", labels);
  double apart = 0;
  const Tensor at_once = model(source, input, pass).value().reshape({T - 1, words});
  for (i64 t = 0; t < T - 1; ++t) {
    const Tensor alone = model(source, slice(input, 1, 0, t + 1), pass).value().reshape({t + 1, words});
    apart = std::max(apart, std::sqrt(sum_of_squares(alone.rows(t, t + 1) - at_once.rows(t, t + 1))));
  }
  std::cout << "each row as if the tokens so far were all there is: " << (apart < 1e-12 ? "yes" : "no") << "\n\n";

  std::cout << std::fixed << std::setprecision(4);
  constexpr double eps = 0.1;
  const Tensor p = Tensor::of<double>({1, K}, {0.7, 0.1, 0.1, 0.05, 0.05}), label = Tensor::of<i32>({1}, {0});
  Tensor q = full({1, K}, eps / K, f64);
  q(0, 0) = 1 - eps + eps / K;
  const Variable logits = parameter(log(constant(p)).value());
  const auto loss_of = [&](double smoothing) { return cross_entropy(logits, label, {.label_smoothing = smoothing}); };
  const double by_hand = -dot(q, logits.value()), least = -dot(q, log(constant(q)).value());
  std::cout << "loss without smoothing   " << loss_of(0).item() << '\n';
  print("p        ", p);
  print("q        ", q);
  std::cout << "loss with eps = 0.1      " << loss_of(eps).item() << "\nthe least it can be      " << least << '\n';
  backward(loss_of(eps));
  print("gradient ", logits.gradient());
  print("p - q    ", p - q);
  std::cout << "-sum_k q_k log p_k       " << by_hand << '\n';
  std::cout << "where p = q, the right logit lies " << std::log(q.at(0) / q.at(1)) << " above the others\n";
  const double error = std::fabs(loss_of(eps).item() - by_hand);
  return apart < 1e-12 && error < 1e-12 && sum_of_squares(logits.gradient() - (p - q)) < 1e-24 ? 0 : 1;
}
