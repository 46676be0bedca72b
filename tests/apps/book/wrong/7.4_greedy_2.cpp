// Chapter 7. A wrong answer to exercise 7.4: nothing ends at eos.
// Expect: FAILED  it ends at eos
#include <vector>

#include "core/tensor_ops.h"
#include "nn/nn.h"

using namespace orrery;

std::vector<i32> my_greedy_decode(const nn::Transformer& model, const Tensor& source, i32 bos, i32 eos, i64 max_len) {
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  std::vector<i32> tokens{bos};
  for (i64 T = 1; T <= max_len; ++T) {
    const Tensor target = Tensor::of<i32>({1, T}, tokens);
    const Tensor likeliest = argmax(model(source, target, pass).value());
    tokens.push_back(likeliest.data<i32>()[T - 1]);
  }
  tokens.erase(tokens.begin());
  return tokens;
}
