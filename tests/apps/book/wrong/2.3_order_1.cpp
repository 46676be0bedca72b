// Chapter 2. A wrong answer to exercise 2.3: nodes in the order in which a search from y meets them.
// Expect: a node before one that was computed from it
#include <algorithm>
#include <set>
#include <vector>

using Graph = std::vector<std::vector<size_t>>;

std::vector<size_t> visiting_order(const Graph& inputs, size_t y) {
  std::vector<size_t> order{y};
  std::set<size_t> seen{y};
  for (size_t i = 0; i < order.size(); ++i)
    for (const size_t input : inputs[order[i]])
      if (seen.insert(input).second) order.push_back(input);
  return order;
}
