// Chapter 2. A wrong answer to exercise 2.3: a node is visited again for each node that was computed from it.
// Expect: a node twice
#include <algorithm>
#include <set>
#include <vector>

using Graph = std::vector<std::vector<size_t>>;

std::vector<size_t> visiting_order(const Graph& inputs, size_t y) {
  std::vector<size_t> order{y};
  for (size_t i = 0; i < order.size(); ++i)
    for (const size_t input : inputs[order[i]]) order.push_back(input);
  return order;
}
