// Chapter 0. Exercise 0.1: copy instead of reverse.
//
// The program reverses because its target is the source in reverse order. Make the target of the task "copy", and cut
// a target into the two sequences that teacher forcing needs.
// A source is i32 [B, T]: B sequences of T symbols. Its target is [B, T + 2]: the begin mark 1, the symbols, the end
// mark 2. The decoder reads the target without its last token. At each place it should say the token that comes next
// in the target.
// Grade it:  apps/run exercise 0.1
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_target(const Tensor& source) {
  const i64 B = source.size(0);
  const Tensor first = full({B, 1}, 1, Dtype::i32), last = full({B, 1}, 2, Dtype::i32);
  return concat({first, flip(source, 1), last}, 1);  // YOUR CODE: this is the target of reverse
}

Tensor my_decoder_input(const Tensor& target) {
  return target;  // YOUR CODE: not all of it
}

Tensor my_next_tokens(const Tensor& target) {
  return target;  // YOUR CODE: not all of it
}
