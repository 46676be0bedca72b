// Chapter 10. Exercise 10.2: hide words.
//
// From ids i32 [n], make what a BERT reads and what it must find. Ids below `first` are no words ([CLS], [SEP],
// padding): they stay. Each word is chosen with probability 0.15. The label of a chosen word is its id, and that of
// everything else is -100, which cross entropy ignores. Of the chosen words 8 in 10 are replaced by `mask`, 1 in 10 by
// any word, where each of `first`, ..., `vocabulary` - 1 is equally likely, and 1 in 10 stays. `ids` must not change.
// Grade it:  apps/run exercise 10.2
#include "core/random.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyHidden {
  Tensor ids, labels;  // i32 [n]
};

MyHidden my_hidden_words(const Tensor& ids, i32 first, i32 mask, i32 vocabulary, Rng& rng) {
  MyHidden hidden{ids.clone(), full(ids.shape(), -100, Dtype::i32)};
  // YOUR CODE: rng.uniform() draws from [0, 1), rng.integer(a, b) from a, ..., b - 1
  return hidden;
}
