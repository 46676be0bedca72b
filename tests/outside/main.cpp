// Chapter 9. A program of somebody else's project: trains a small Transformer and prints a fingerprint of its numbers.
//
// The checker, a library of its own, then proves an operation.
#include <iostream>

#include "autograd/check/proof.h"
#include "core/files/hash.h"
#include "nn/nn.h"
#include "optim/optim.h"

using namespace orrery;

int main() {
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
