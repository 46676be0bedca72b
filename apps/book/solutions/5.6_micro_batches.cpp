// Chapter 5. Solution of exercise 5.6: one batch in several parts.
//
// A batch is too large for the memory and comes in parts, whose targets are padded with -100 by different amounts. Call
// backward once for each part, such that the gradients add up to those of cross_entropy over the whole batch: the mean
// over all targets that are not padding. CrossEntropyOptions (autograd/ops/cross_entropy.h) has what you need.
// Target number i of a part is targets.at(i), and there are targets.count() of them.
#include <vector>

#include "autograd/ops.h"
#include "nn/nn.h"

using namespace orrery;

struct Part {
  Tensor x;        // [rows, features]
  Tensor targets;  // i32 [rows], -100 where there is none
};

void my_backward(const nn::Linear& layer, const std::vector<Part>& parts) {
  i64 counted = 0;
  for (const Part& part : parts) {
    for (i64 row = 0; row < part.targets.count(); ++row) counted += part.targets.at(row) != -100;
  }
  const CrossEntropyOptions options{.reduction = Reduction::divisor, .divisor = static_cast<double>(counted)};
  for (const Part& part : parts) backward(cross_entropy(layer(constant(part.x)), part.targets, options));
}
