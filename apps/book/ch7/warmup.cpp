// Chapter 7. Ten first steps of a deep stack, with and without warm-up.
// Question: six post-norm layers learn nothing at a rate at which six pre-norm layers learn. What goes wrong?
// Answer: the first steps make all positions equal. Then the way back is closed: almost no gradient reaches the bottom.
//   Warm-up keeps the positions apart. Averages of Adam that are filled before the first step do not.
// Serves: optim/schedule.h
#include <cmath>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/layers/embedding.h"
#include "nn/models/encoder.h"
#include "nn/positions/positional_encoding.h"
#include "optim/adam.h"

using namespace orrery;

namespace {

constexpr i64 letters = 8, n = 16, d_model = 32, layers = 6, steps = 10, unasked = -100;

struct Model : nn::Module {
  nn::Embedding embedding;
  nn::PositionalEncoding positions;
  nn::Encoder encoder;
  nn::Linear generator;
  Model(bool pre_norm, Rng& rng)
      : embedding(letters, d_model, rng),
        positions(nn::Positions::sinusoidal, n, d_model, rng),
        encoder(layers, pre_norm, {.d_model = d_model, .num_heads = 4, .d_ff = 64, .norm_first = pre_norm}, rng),
        generator(d_model, letters, rng) {}
  void visit(nn::Visitor& v) override { v("embedding", embedding), v("encoder", encoder), v("generator", generator); }
};

struct Run {
  bool pre_norm = false;
  i64 warmup = 0, fill = 0;  // steps in which the rate rises; steps at rate 0 before, which fill Adam's averages
  std::vector<double> differences{}, gradients{};  // before each step
};

double length(const Tensor& x) { return std::sqrt(sum_of_squares(x)); }

// At each position the answer is the letter before it.
void train(Run& run) {
  Rng rng(7);
  Model model(run.pre_norm, rng);
  nn::to(model, f64);
  optim::Adam adam(model.parameters(), {.beta2 = 0.98});
  for (i64 step = 1 - run.fill; step <= steps + 1; ++step) {
    const Tensor ids = randint(0, letters, {16, n}, rng);
    Tensor labels = full({16, n}, unasked, Dtype::i32);
    slice_into(labels, slice(ids, 1, 0, -1), 1, 1, false);
    nn::Pass pass = nn::Pass::inference();
    const Variable x = model.positions(model.embedding(ids) * std::sqrt(1.0 * d_model));
    const Variable top = model.encoder(x, Mask::causal(), pass);
    backward(cross_entropy(model.generator(top), labels, {.ignore_index = unasked}));
    if (step > 0) run.differences.push_back(length(top.value() - mean(top.value(), {1}, true)) / length(top.value()));
    if (step > 0)
      run.gradients.push_back(length(model.embedding.weight.gradient()) / length(model.generator.weight.gradient()));
    const double warm = run.warmup ? static_cast<double>(step) / static_cast<double>(run.warmup) : 1;
    adam.step(step > 0 ? 0.01 * warm : 0, 1.0);
  }
}

}  // namespace

int main() {
  Run post, filled{.fill = 50}, warm{.warmup = 50}, pre{.pre_norm = true};
  for (Run* run : {&post, &filled, &warm, &pre}) train(*run);
  std::cout << std::fixed << "after step   post-norm   averages filled   warm-up of 50   pre-norm\n";
  const auto print = [&](const std::string& what, std::vector<double> Run::*numbers, int digits) {
    std::cout << what << '\n' << std::setprecision(digits);
    for (const size_t t : {0, 1, 2, 5, 10})
      std::cout << std::setw(10) << t << std::setw(12) << (post.*numbers)[t] << std::setw(18) << (filled.*numbers)[t]
                << std::setw(16) << (warm.*numbers)[t] << std::setw(11) << (pre.*numbers)[t] << '\n';
  };
  print("difference between the positions at the top, as a part of their length", &Run::differences, 3);
  print("gradient of the embedding, as a part of the generator's", &Run::gradients, 4);
  return 0;
}
