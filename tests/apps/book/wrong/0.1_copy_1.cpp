// Chapter 0. A wrong answer to exercise 0.1: the decoder is given what it should say.
// Expect: [0, 0] is 5, should be 1
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_target(const Tensor& source) {
  const i64 B = source.size(0);
  const Tensor first = full({B, 1}, 1, Dtype::i32), last = full({B, 1}, 2, Dtype::i32);
  return concat({first, source, last}, 1);
}

Tensor my_decoder_input(const Tensor& target) { return slice(target, 1, 1); }

Tensor my_next_tokens(const Tensor& target) { return slice(target, 1, 1); }
