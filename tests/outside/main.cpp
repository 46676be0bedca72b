// Chapter 9. A program of somebody else's project: trains a small Transformer and prints a fingerprint of its numbers.
//
// The checker, a library of its own, then proves an operation. With an argument, it instead compares an operation of
// its own with the library's, which is the same formula, in one line like those of `orrery bench`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "autograd/check/proof.h"
#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "autograd/ops/formulas.h"
#include "core/files/hash.h"
#include "core/tensor_ops.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

// The fastest of many passes, forward and backward, and a fingerprint of what they computed.
struct Measured {
  double milliseconds = 1e9;
  std::string bits{};
};

template <class Operation> Measured measured(const Operation& operation) {
  Rng rng(1);
  Variable x = parameter(randn({1 << 20}, rng));
  Fingerprint fingerprint;
  Measured result;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Variable y = operation(x);
    backward(sum(y));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    result.milliseconds = std::min(result.milliseconds, time.count());
    if (i == 0) fingerprint.add(y.value());
    if (i == 0) fingerprint.add(x.gradient());
    x.clear_gradient();
  }
  result.bits = fingerprint.hex();
  return result;
}

// Compiles the library's formula here, as a formula of one's own would be.
int compare_own_operation() {
  const Measured own = measured([](const Variable& x) { return elementwise(formula::GeluTanh{}, x); });
  const Measured library = measured([](const Variable& x) { return gelu_tanh(x); });
  std::printf("gelu_tanh own_ms=%.2f library_ms=%.2f ratio=%.2f bits=%s\n", own.milliseconds, library.milliseconds,
              own.milliseconds / library.milliseconds, own.bits == library.bits ? "equal" : "different");
  return 0;
}

}  // namespace

int main(int count, char**) {
  if (count > 1) return compare_own_operation();
  Rng rng(1);
  nn::TransformerConfig config{.src_vocab_size = 16, .tgt_vocab_size = 16};
  config.layer = {.d_model = 24, .num_heads = 3, .d_ff = 50};
  nn::Transformer model(config, rng);
  optim::Adam adam(model.parameters());
  Fingerprint fingerprint;
  for (i64 step = 1; step <= 10; ++step) {
    const Tensor source = randint(3, 16, {8, 9}, rng), target = flip(source, 1);
    nn::Pass pass = nn::Pass::training(1, step);
    const Variable loss = model.loss(source, slice(target, 1, 0, -1), slice(target, 1, 1), pass);
    backward(loss);
    adam.step(1e-3, 1.0);
    fingerprint.add(loss.value());
  }
  for (const NamedParameter& parameter : adam.parameters()) fingerprint.add(parameter.value.value());
  std::cout << fingerprint.hex() << '\n';
  return prove("tanh", [](const Variable& x) { return tanh(x); }, {{2, 3}}) ? 0 : 1;
}
