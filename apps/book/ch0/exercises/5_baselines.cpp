// Chapter 0. Exercise 0.5: two models that know nothing.
//
// A loss says little without another to compare it with. Work out what two models that never read the source can reach.
// `labels` (i32, any shape) are the tokens that have to be said; those equal to `padding` do not count.
// Label number i is labels.at(i) (from 0, a double), and there are labels.count().
// - my_uniform: each of `words` tokens has the same probability, and the model says one of them at random.
// - my_by_frequency: each token's probability is its fraction of the counted labels; the model always says the
//   most frequent one.
// Return the loss (the mean of -ln p over the labels that count) and the accuracy (the fraction of them that is said
// right; for the first model, its expectation). If no label counts, both are 0.
// Grade it:  apps/run exercise 0.5
#include <algorithm>
#include <cmath>
#include <map>

#include "core/tensor_ops.h"

using namespace orrery;

struct Baseline {
  double loss = 0, accuracy = 0;
};

Baseline my_uniform(const Tensor& labels, i64 words, i32 padding) {
  return {};  // YOUR CODE: what is -ln p here?
}

Baseline my_by_frequency(const Tensor& labels, i32 padding) {
  return {};  // YOUR CODE: count each token first
}
