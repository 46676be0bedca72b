// Chapter 5. SGD and Adam where some words are rare, and where all are equally frequent.
// Question: why do Transformers train so much better with Adam than with SGD?
// Answer: a part of it is that words are unequally frequent. Gradient descent, with momentum, too, is slow for those
//   that are rare. With equal frequencies it learns all words, as Adam does with either (Kunstner et al. 2024).
#include <iomanip>
#include <iostream>
#include <memory>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

// Word i is the right answer to an input of its own, of 32 numbers. Inputs have a common part, as vectors in a network
// do. Scores are a linear map of them, and every step sees all words.
struct Words {
  static constexpr i64 count = 512, d = 32, steps = 30;
  Tensor inputs, wanted = zeros({count, count}, f64);  // wanted: how frequent each word is, at its place
  Words(bool rare, Rng& rng) : inputs(randn({count, d}, rng, f64) + 1.0) {
    for (i64 i = 0; i < count; ++i) wanted(i, i) = rare ? 1 / static_cast<double>(i + 1) : 1.0;
    wanted = wanted / sum(wanted).item();
  }
};

struct Result {
  double loss = 1e9;
  i64 commonest = 0, rarest = 0;  // how many of the 128 commonest and rarest words are known
};

Result train(const Words& words, double rate, std::unique_ptr<optim::Optimizer> optimizer, const Variable& W) {
  const auto scores = [&] { return matmul(constant(words.inputs), W, Trans::b); };
  const auto loss = [&] { return sum(log_softmax(scores()) * constant(-words.wanted)); };  // cross entropy
  for (i64 step = 1; step <= Words::steps; ++step) {
    backward(loss());
    optimizer->step(rate * optim::linear_cooldown(step, Words::steps, 0));
  }
  Result result{.loss = loss().item()};
  const Tensor said = argmax(scores().value());
  for (i64 i = 0; i < Words::count; ++i) {
    const bool known = said.at(i) == static_cast<double>(i);
    result.commonest += known && i < 128;
    result.rarest += known && i >= Words::count - 128;
  }
  return result;
}

// The lowest loss of several rates.
Result best(const Words& words, const std::vector<double>& rates, bool adam) {
  Result lowest;
  for (const double rate : rates) {
    const Variable W = parameter(zeros({Words::count, Words::d}, f64), "W");
    std::unique_ptr<optim::Optimizer> optimizer = std::make_unique<optim::Adam>(optim::ParameterGroups{W});
    if (!adam) optimizer = std::make_unique<optim::SGD>(optim::ParameterGroups{W}, optim::SGDOptions{.momentum = 0.9});
    const Result result = train(words, rate, std::move(optimizer), W);
    if (result.loss < lowest.loss) lowest = result;
  }
  return lowest;
}

}  // namespace

int main() {
  std::cout << "Of the 128 commonest and rarest words are known:\nfrequency  optimiser  loss   commonest  rarest\n"
            << std::fixed << std::setprecision(3);
  std::vector<Result> results;
  for (const bool rare : {true, false}) {
    Rng rng(5);
    const Words words(rare, rng);
    for (const bool adam : {false, true}) {
      const Result r = best(words, adam ? std::vector{0.1, 0.3} : std::vector{1.0, 3.0, 10.0}, adam);
      std::cout << (rare ? "1/i        " : "equal      ") << (adam ? "Adam      " : "momentum  ") << std::setw(5)
                << r.loss << std::setw(12) << r.commonest << std::setw(8) << r.rarest << '\n';
      results.push_back(r);
    }
  }
  const bool all_others = results[1].rarest > 120 && results[2].rarest > 120 && results[3].rarest > 120;
  return results[0].rarest < 10 && all_others ? 0 : 1;
}
