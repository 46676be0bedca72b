// Chapter 5. A wrong answer to exercise 5.6: padding counts in the divisor.
// Expect: FAILED  one part with padding
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
  for (const Part& part : parts) counted += part.targets.count();
  const CrossEntropyOptions options{.reduction = Reduction::divisor, .divisor = static_cast<double>(counted)};
  for (const Part& part : parts) backward(cross_entropy(layer(constant(part.x)), part.targets, options));
}
