// Chapter 7. Solution of exercise 7.4: greedy decoding.
//
// Write a sentence with a Transformer for one source i32 [1, S]: begin with bos, give the model all tokens written so
// far as the target, append the likeliest next token, and go on until that token is eos or max_len tokens are written.
// Return them without bos, but with eos if it was written.
//
// model(source, target, pass) gives logits [1, T, words]; argmax(logits.value()) gives i32 [1, T], the likeliest class
// of each row. No cache is needed here.
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
    if (tokens.back() == eos) break;
  }
  tokens.erase(tokens.begin());
  return tokens;
}
