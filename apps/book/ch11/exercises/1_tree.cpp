// Chapter 11. Exercise 11.1: the tree.
//
// Add numbers in the order of the tree of apps/training/gradient_tree.h. Its leaves are the numbers 0 to M - 1, where M
// is at least 1. A node of level l has the leaves from k 2^l to (k + 1) 2^l - 1, without those that do not exist. It is
// the left half plus the right half, in f32. A half without leaves is not there, and adds nothing.
//   M = 5: ((g0 + g1) + (g2 + g3)) + g4
// Grade it:  apps/run exercise 11.1
#include <vector>

float my_tree_sum(const std::vector<float>& g) {
  float sum = g[0];
  for (size_t i = 1; i < g.size(); ++i) sum += g[i];  // YOUR CODE: this is from left to right
  return sum;
}
