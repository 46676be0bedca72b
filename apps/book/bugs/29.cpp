// Chapter 5. Bug 29: one step from several parts of a batch.
//
// Each micro-batch, or each of several machines, gives a gradient of its own; the batch's gradient is their sum. A step
// moves p against it, by no more than rate * max_norm.
// Its symptoms:  apps/run gradcheck --bug 29
// Grade it:  apps/run exercise bug.29
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

// g, shortened to max_norm if it is longer.
Tensor clipped(const Tensor& g, double max_norm) { return g * std::min(1.0, max_norm / std::sqrt(sum_of_squares(g))); }

void my_step(Tensor& p, const std::vector<Tensor>& parts, double rate, double max_norm) {
  Tensor g = zeros(p.shape(), p.dtype());
  for (const Tensor& part : parts) g = g + clipped(part, max_norm);
  p = p - g * rate;
}
