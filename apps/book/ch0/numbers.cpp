// Chapter 0. The worked numbers of the text: scores, probabilities, losses, and what exact match asks for.
// Question: what is the loss of a model that guesses, and what is the lowest loss that any model can reach?
// Answer: among 16 tokens a guess costs ln 16 = 2.7726. With label smoothing of 0.1 the best there is costs 0.5650, not
//   0. An accuracy of 0.99 a token makes 0.8953 of all answers of 11 tokens right.
#include <cmath>
#include <cstdio>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

bool agree(double by_hand, double from_library) { return std::fabs(by_hand - from_library) < 1e-12; }

// The library's loss where `scores` are given and token number `wanted` is right.
double loss_of(const Tensor& scores, i32 wanted, double smoothing = 0) {
  return cross_entropy(constant(scores), Tensor::of<i32>({1}, {wanted}), {.label_smoothing = smoothing}).item();
}

bool scores_to_loss() {
  bool right = true;
  const Tensor scores = Tensor::of<double>({1, 3}, {2, 1, 0});
  const Tensor probabilities = softmax(constant(scores)).value();
  const double total = std::exp(2) + std::exp(1) + std::exp(0);
  std::printf("score  e^score  probability  loss if this token is the right one\n");
  for (i32 i = 0; i < 3; ++i) {
    const double score = scores(0, i), e = std::exp(score), p = e / total;
    std::printf("%5.0f  %7.4f  %11.4f  %.4f\n", score, e, p, -std::log(p));
    right = right && agree(p, probabilities(0, i)) && agree(-std::log(p), loss_of(scores, i));
  }
  std::printf("the sum of the three e^score is %.4f\n\n", total);
  return right;
}

bool losses_of_probabilities() {
  std::printf("probability of the right token, and the loss\n");
  for (const double p : {0.01, 0.0625, 0.5, 0.9, 0.99}) std::printf("%6.4f  %.4f\n", p, -std::log(p));
  std::printf("guessing among 16 tokens costs ln 16 = %.4f\n\n", std::log(16));
  return agree(std::log(16), loss_of(zeros({1, 16}, f64), 5));
}

// The loss cannot be smaller than where the model says the smoothed target itself.
bool smallest_loss() {
  const double other = 0.1 / 16, wanted = 0.9 + other;
  const double smallest = -wanted * std::log(wanted) - 15 * other * std::log(other);
  std::printf("smoothed target: %.5f for the right token, %.5f for each of the 15 others\n", wanted, other);
  std::printf("the smallest loss there is: %.4f\n\n", smallest);
  Tensor best = full({1, 16}, std::log(other), f64);
  best(0, 5) = std::log(wanted);
  return agree(smallest, loss_of(best, 5, 0.1));
}

bool one_head_reads() {
  const Tensor weights = Tensor::of<double>({1, 3}, {0.7, 0.2, 0.1});
  const Tensor values = Tensor::of<double>({3, 2}, {10, 0, 0, 10, 20, 20});
  const double first = 0.7 * 10 + 0.2 * 0 + 0.1 * 20, second = 0.7 * 0 + 0.2 * 10 + 0.1 * 20;
  std::printf("weights 0.7, 0.2, 0.1 of the values (10, 0), (0, 10), (20, 20) read (%.1f, %.1f)\n\n", first, second);
  const Tensor read = matmul(weights, values);
  return agree(first, read(0, 0)) && agree(second, read(0, 1));
}

}  // namespace

int main() {
  bool right = scores_to_loss();
  right &= losses_of_probabilities();
  right &= smallest_loss();
  right &= one_head_reads();
  std::printf("accuracy of a token, and of a whole answer of 11 tokens\n");
  for (const double accuracy : {0.9, 0.99, 0.999}) std::printf("%5.3f  %.4f\n", accuracy, std::pow(accuracy, 11));
  return right ? 0 : 1;
}
