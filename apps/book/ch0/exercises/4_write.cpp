// Chapter 0. Exercise 0.4: write an answer, token by token.
//
// A trained model says one token at a time. `next_scores(written)` is such a model: it is given everything that has
// been written so far, beginning with the begin mark 1, and returns a score for each token of its vocabulary as the
// next one.
// Write an answer: take the token with the highest score (the first one if several are equal), write it down, and ask
// again, until the end mark 2 has been said or `most` tokens have been written. Return the answer without the begin
// mark and without the end mark. This is called greedy decoding.
// Grade it:  apps/run exercise 0.4
#include <algorithm>
#include <functional>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

using NextScores = std::function<std::vector<double>(const std::vector<i32>& written)>;

std::vector<i32> my_write(const NextScores& next_scores, i64 most) {
  std::vector<i32> written{1};
  if (most > 0) next_scores(written);  // YOUR CODE: one question is not enough, and nobody reads the answer
  return written;
}
