// Chapter 8. Memory that is used again: what a training step asks the system for.
// Question: how often does a training step ask for memory, and how often does the question reach the system?
// Answer: every step asks some dozens of times, since each result is a new tensor. The first steps get pages from the
//   system; from the third step on, everything comes from what earlier steps gave back.
#include <iostream>

#include "autograd/ops.h"
#include "core/machine/memory.h"
#include "core/tensor_ops.h"
#include "nn/layers/feed_forward.h"
#include "optim/optim.h"

using namespace orrery;

int main() {
  constexpr i64 rows = 512, d_model = 64, d_ff = 256, steps = 5;
  Rng rng(8);
  nn::FeedForward model(d_model, d_ff, rng);
  optim::Adam adam(model.parameters());
  const Variable x = constant(randn({rows, d_model}, rng));
  bool quiet = true;
  std::cout << "step  asked  of these the system\n";
  for (i64 step = 1; step <= steps; ++step) {
    const MemoryCounters before = memory_counters();
    nn::Pass pass = nn::Pass::training(8, step);
    const Variable difference = model(x, pass) - x;  // learn to give back the input
    backward(mean(difference * difference));
    adam.step(1e-3);
    const MemoryCounters after = memory_counters();
    const i64 of_system = after.system_requests - before.system_requests;
    std::cout << "   " << step << "    " << after.allocations - before.allocations << "    " << of_system << '\n';
    quiet &= step < 3 || of_system == 0;
  }
  std::cout << "from the third step on the system is asked for nothing: " << (quiet ? "yes" : "no") << '\n';
  return quiet ? 0 : 1;
}
