// Chapter 11. Exercise 11.1: the tree.
//
// g has what each of M micro-batches, at least one, gives as the gradient of one parameter. Add in the order of the
// tree. Its leaves are the micro-batches 0 to M - 1. A node of level l has those from k 2^l to (k + 1) 2^l - 1, without
// those that do not exist. It is its left half plus its right half, in f32. Where the right half has no leaf at all,
// the node is its left half.
//   M = 5: ((g0 + g1) + (g2 + g3)) + g4
// Grade it:  apps/run exercise 11.1
#include <vector>

float my_tree_sum(const std::vector<float>& g) {
  float sum = 0;
  for (const float one : g) sum += one;  // YOUR CODE: this adds from left to right
  return sum;
}
