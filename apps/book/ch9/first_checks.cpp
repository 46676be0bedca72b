// Chapter 9. What to check first when a model does not learn.
// Question: which quick experiments tell a broken model from one that is only trained badly?
// Answer: the first loss is near ln K for K tokens; one batch can be learned by heart; and among rates a factor of ten
//   apart one is far better than the others. If the first two fail, look for a mistake before you change any setting.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/models/gpt.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

constexpr i64 tokens = 11, length = 8, steps = 100;

// The losses of the first step and after the last, of a small GPT that always gets the same batch.
std::pair<double, double> losses_on_one_batch(double rate) {
  Rng rng(9);
  nn::Gpt model({.vocab_size = tokens,
                 .layer = {.d_model = 16, .num_heads = 2, .d_ff = 32, .dropout = 0},
                 .num_layers = 1,
                 .max_len = length},
                rng);
  nn::to(model, f64);
  const Tensor text = randint(0, tokens, {4, length + 1}, rng);
  const Tensor ids = slice(text, -1, 0, length), labels = slice(text, -1, 1, length + 1);
  optim::Adam adam(model.parameters());
  double first = 0;
  for (i64 step = 0; step <= steps; ++step) {
    nn::Pass pass = nn::Pass::inference();
    const Variable loss = model.loss(ids, labels, pass);
    if (step == 0) first = loss.item();
    if (step == steps) return {first, loss.item()};
    backward(loss);
    adam.step(rate, 1.0);
  }
  return {};
}

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(2) << "ln " << tokens << " = " << std::log(tokens) << '\n';
  double first = 0, best = 1e9;
  for (const double rate : {1e-5, 1e-4, 1e-3, 1e-2}) {
    const auto [before, after] = losses_on_one_batch(rate);
    std::cout << "rate 1e" << std::lround(std::log10(rate)) << "  first loss " << before << "  after " << steps
              << " steps on one batch " << after << '\n';
    first = before;
    best = std::min(best, after);
  }
  return std::fabs(first - std::log(tokens)) < 0.3 && best < 0.1 ? 0 : 1;
}
