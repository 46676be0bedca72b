// Chapter 7. Exercise 7.1: input and labels for teacher forcing.
//
// Sentences i32 [B, T] have neither a first nor a last token, and those shorter than T are filled up with `pad`. Make
// of them what a Transformer is trained with, both i32 [B, T + 1]:
//
// input: bos, then the sentence, then pad to the end of the row. labels: the sentence, then eos right after its last
// token, then `ignore` to the end of the row, so that padding does not count in the loss. In each row, the label at t
// is the token that the model should write after it has read the input up to t.
// Grade it:  apps/run exercise 7.1
#include "core/tensor_ops.h"
#include "nn/nn.h"

using namespace orrery;

struct TeacherForcing {
  Tensor input, labels;
};

TeacherForcing my_shift(const Tensor& sentences, i32 bos, i32 eos, i32 pad, i32 ignore) {
  const i64 B = sentences.size(0), T = sentences.size(1);
  const Tensor lengths = lengths_of(sentences, pad);  // i32 [B]
  Tensor input = full({B, T + 1}, pad, Dtype::i32), labels = full({B, T + 1}, ignore, Dtype::i32);
  // YOUR CODE: fill both tables, row by row
  return {input, labels};
}
