// Chapter 7. Exercise 7.4: the layers of both stacks.
//
// Put the paper's two layers together. Their parts are given, each with weights of its own:
//
// part.self(queries, memory, mask), part.cross(...): attention (6.3); rows of `memory` give keys and values
// part.feed_forward(x), part.norm1(x), part.norm2(x), part.norm3(x)
//
// An encoder layer has self-attention, then the feed-forward network. A decoder layer has self-attention over what is
// written, under the mask `causal`; then cross-attention to the encoder's output, the memory, under the mask `visible`;
// then the feed-forward network. Each sub-layer f has the next norm, and a sum around it: norm(x + f(x)), which is
// post-norm, or, if part.norm_first is true, x + f(norm(x)): of cross-attention this normalises the queries, never the
// memory.
//
// The types are left open (auto), since the layers run with Variables here, and on a tape of yours in own.5 and own.6:
// a + b and calls are all that you need.
// Grade it:  apps/run exercise 7.4
#include "autograd/ops.h"

using namespace orrery;

// One sub-layer: f of one argument, with its sum and its norm.
auto my_sublayer(const auto& x, const auto& f, const auto& norm, bool norm_first) {
  return f(x);  // YOUR CODE: neither sum nor norm
}

auto my_encoder_layer(const auto& x, const auto& mask, const auto& part) {
  return part.norm2(x);  // YOUR CODE
}

auto my_decoder_layer(const auto& x, const auto& memory, const auto& causal, const auto& visible, const auto& part) {
  return part.norm3(x);  // YOUR CODE
}
