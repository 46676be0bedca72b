// Chapter 7. The first sixty steps of six layers, with and without warm-up.
// Question: at a rate of 0.01, six post-norm layers learn nothing without warm-up, and six pre-norm layers learn. Why?
// Answer: long first steps, also of SGD, make all positions of a post-norm stack equal, and almost no gradient reaches
//   its bottom. Filled averages of Adam do not help. Behind a warm-up, a full step adds a tenth as much to all alike.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

constexpr i64 letters = 8, n = 16, width = 32, steps = 60, unasked = -100;

struct Run {
  bool pre_norm = false, sgd = false;  // SGD: each step as long as one that moves every number by the rate
  i64 fill = 0, warmup = 1;            // steps at rate 0, which fill Adam's averages; steps in which the rate rises
  std::vector<double> differences{}, gradients{}, losses{}, sums{}, kappas{};  // of each step
};

double length(const Tensor& x) { return std::sqrt(sum_of_squares(x)); }

// Learns to say, at each position, the letter before it.
Run trained(Run run) {
  Rng rng(7);
  nn::Embedding embedding(letters, width, rng);
  const nn::PositionalEncoding positions(nn::Positions::sinusoidal, n, width, rng);
  nn::Encoder stack(6, run.pre_norm, {.d_model = width, .num_heads = 4, .d_ff = 64, .norm_first = run.pre_norm}, rng);
  nn::Linear generator(width, letters, rng);
  Parameters all;
  double count = 0;
  for (nn::Module* part : std::initializer_list<nn::Module*>{&embedding, &stack, &generator}) {
    nn::to(*part, f64);
    for (const NamedParameter& p : part->parameters()) all.push_back({std::to_string(all.size()), p.value});
    count += static_cast<double>(part->parameter_count());
  }
  optim::Adam adam(all, {.beta2 = 0.98});
  for (i64 step = -run.fill; step <= steps; ++step) {
    const Tensor ids = randint(0, letters, {16, n}, rng);
    const Tensor labels = concat({full({16, 1}, unasked, Dtype::i32), slice(ids, 1, 0, -1)}, 1);
    nn::Pass pass = nn::Pass::inference();
    const Variable top = stack(positions(embedding(ids) * std::sqrt(1.0 * width)), Mask::causal(), pass);
    const Variable loss = cross_entropy(generator(top), labels, {.ignore_index = unasked});
    backward(loss);
    run.losses.push_back(loss.item());
    run.differences.push_back(length(top.value() - mean(top.value(), {1}, true)) / length(top.value()));
    run.gradients.push_back(length(embedding.weight.gradient()) / length(generator.weight.gradient()));
    const nn::FeedForward& last = stack.layers.back().feed_forward;
    run.sums.push_back(length(last.linear2.bias.gradient()));
    const Tensor f = last(constant(top.value()), pass).value();
    const double rate = step < 0 ? 0 : 0.01 * std::min(1.0, static_cast<double>(step + 1) / run.warmup);
    run.sgd ? optim::SGD(all).step(rate * std::sqrt(count) / optim::grad_norm(all)) : adam.step(rate);
    const Tensor added = last(constant(top.value()), pass).value() - f;
    run.kappas.push_back(length(mean(added, {0, 1})) / std::sqrt(1.0 * width) * 0.01 / rate);
  }
  return run;
}

void print(const std::string& what, std::vector<double> Run::*numbers, const std::vector<Run>& runs) {
  std::cout << what << '\n';
  for (const i64 t : {0, 10, 50, 60}) {
    std::cout << std::setw(5) << t;
    for (const Run& run : runs) std::cout << std::setw(11) << (run.*numbers).end()[t - steps - 1];
    std::cout << '\n';
  }
}

}  // namespace

int main() {
  const std::vector<Run> runs{trained({}), trained({.fill = 50}), trained({.sgd = true}), trained({.warmup = 50}),
                              trained({.pre_norm = true})};
  std::cout << std::fixed << std::setprecision(4) << "steps  post-norm     filled        SGD    warm-up   pre-norm\n";
  print("difference between the positions at the top, relative to their length", &Run::differences, runs);
  print("gradient of the embedding, relative to the generator's", &Run::gradients, runs);
  print("loss; that of guessing is ln 8, about 2.08", &Run::losses, runs);
  print("|sum df| of the last feed-forward network", &Run::sums, runs);
  print("kappa of a step at rate 0.01", &Run::kappas, runs);
  for (size_t r = 0; r < runs.size(); ++r)
    if ((runs[r].gradients.back() > 0.1) != (r >= 3) || (runs[r].losses.back() < 1.5) != (r >= 3)) return 1;
}
