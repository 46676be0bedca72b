// Chapter 2. Solution of exercise 2.3: an order of your own.
//
// A graph without creation numbers: inputs[i] lists the nodes that node i was computed from, and the numbers of
// nodes say nothing about their age. Return the nodes that y leads back to, y among them, in an order in which
// backward may visit them: each once, and each after every node that was computed from it.
#include <algorithm>
#include <set>
#include <vector>

using Graph = std::vector<std::vector<size_t>>;

// Appends `node` after everything that it was computed from.
void append(const Graph& inputs, size_t node, std::set<size_t>& seen, std::vector<size_t>& oldest_first) {
  if (!seen.insert(node).second) return;
  for (const size_t input : inputs[node]) append(inputs, input, seen, oldest_first);
  oldest_first.push_back(node);
}

std::vector<size_t> visiting_order(const Graph& inputs, size_t y) {
  std::set<size_t> seen;
  std::vector<size_t> order;
  append(inputs, y, seen, order);
  std::reverse(order.begin(), order.end());
  return order;
}
