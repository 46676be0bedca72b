// Chapter 5. A wrong answer to exercise 5.6: the mean of the parts' means.
// Expect: FAILED  parts with 3 and 1 targets
#include <vector>

#include "autograd/ops.h"
#include "nn/nn.h"

using namespace orrery;

struct Part {
  Tensor x;        // [rows, features]
  Tensor targets;  // i32 [rows], -100 where there is none
};

void my_backward(const nn::Linear& layer, const std::vector<Part>& parts) {
  const double share = 1.0 / static_cast<double>(parts.size());
  for (const Part& part : parts) backward(cross_entropy(layer(constant(part.x)), part.targets) * share);
}
