// Chapter 7. A wrong answer to exercise 7.1: the labels of padding are pad, so that they count in the loss.
// Expect: [0, 3] is 0, should be -1
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
  for (i64 b = 0; b < B; ++b) {
    const i64 length = lengths.data<i32>()[b];
    input(b, 0) = bos;
    for (i64 t = 0; t < length; ++t) {
      input(b, t + 1) = sentences(b, t);
      labels(b, t) = sentences(b, t);
    }
    labels(b, length) = eos;
    for (i64 t = length + 1; t <= T; ++t) labels(b, t) = pad;
  }
  return {input, labels};
}
