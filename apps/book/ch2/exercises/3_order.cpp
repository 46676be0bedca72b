// Chapter 2. Exercise 2.3: an order of your own.
//
// A graph without creation numbers: inputs[i] lists the nodes that node i was computed from, and the numbers of
// nodes say nothing about their age. Return the nodes that y leads back to, y among them, in an order in which
// backward may visit them: each once, and each after every node that was computed from it.
// Grade it:  apps/run exercise 2.3
#include <algorithm>
#include <set>
#include <vector>

using Graph = std::vector<std::vector<size_t>>;

std::vector<size_t> visiting_order(const Graph&, size_t y) {
  return {y};  // YOUR CODE: and the nodes behind it
}
