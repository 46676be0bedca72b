// Chapter 5. One batch in two parts of unequal padding: why a loss divides by a number that it is given.
// Question: do the gradients of two micro-batches add up to that of the whole batch?
// Answer: not if each loss is the mean of its own targets: one token of a short micro-batch then weighs as much as four
//   of a full one. They do if both are divided by the number of targets of the whole batch.
#include <cmath>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i32 pad = -100;
constexpr i64 K = 3;

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }

// A model that gives every position the same logits, which are its only parameter.
struct Model {
  Variable logits = parameter(Tensor::of<double>({1, K}, {0, std::log(4.0), std::log(5.0)}));

  void go_back(const Tensor& targets, const CrossEntropyOptions& options, double factor = 1) const {
    const Variable all = logits * constant(full({targets.count(), 1}, 1, f64));
    backward(cross_entropy(all, targets, options) * factor);
  }
};

}  // namespace

int main() {
  const Tensor full_part = Tensor::of<i32>({4}, {0, 1, 2, 2}), padded_part = Tensor::of<i32>({4}, {0, pad, pad, pad});
  const Tensor batch = Tensor::of<i32>({8}, {0, 1, 2, 2, 0, pad, pad, pad});

  const Model whole, means, divided;
  whole.go_back(batch, {.ignore_index = pad});

  means.go_back(full_part, {.ignore_index = pad}, 0.5);
  means.go_back(padded_part, {.ignore_index = pad}, 0.5);

  const CrossEntropyOptions by_five{.ignore_index = pad, .reduction = Reduction::divisor, .divisor = 5};
  divided.go_back(full_part, by_five);
  divided.go_back(padded_part, by_five);

  std::cout << "the whole batch               " << whole.logits.gradient() << "\nthe mean of both means        "
            << means.logits.gradient() << "\nboth divided by all 5 targets " << divided.logits.gradient() << '\n';
  const bool equal = largest(whole.logits.gradient() - divided.logits.gradient()) < 1e-15;
  const bool other = largest(whole.logits.gradient() - means.logits.gradient()) > 0.1;
  return equal && other ? 0 : 1;
}
