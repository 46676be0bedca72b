// Chapter 7. Exercise 7.5: greedy decoding.
//
// Write a sentence with a Transformer for one source i32 [1, S]: begin with bos, give the model all tokens written so
// far as the target, append the likeliest next token, and go on until that token is eos or max_len tokens are written.
// Return them without bos, but with eos if it was written.
//
// model(source, target, pass) gives logits [1, T, words]; argmax(logits.value()) gives i32 [1, T], the likeliest class
// of each row, which x(0, j) reads. Tensor::of<i32>({1, T}, tokens) makes a tensor of T tokens. No cache is needed.
// Grade it:  apps/run exercise 7.5
#include <vector>

#include "core/tensor_ops.h"
#include "nn/nn.h"

using namespace orrery;

std::vector<i32> my_greedy_decode(const nn::Transformer& model, const Tensor& source, i32 bos, i32 eos, i64 max_len) {
  const NoGradient nothing_recorded;
  nn::Pass pass = nn::Pass::inference();
  std::vector<i32> tokens{bos};
  // YOUR CODE: append one token after another
  tokens.erase(tokens.begin());
  return tokens;
}
