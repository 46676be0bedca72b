// Chapter 2. A wrong answer to exercise 2.3: the highest number first, as if numbers were ages.
// Expect: FAILED  a chain: 0 from 1 from 2
#include <algorithm>
#include <set>
#include <vector>

using Graph = std::vector<std::vector<size_t>>;

std::vector<size_t> visiting_order(const Graph& inputs, size_t y) {
  std::set<size_t> seen{y};
  std::vector<size_t> order{y};
  for (size_t i = 0; i < order.size(); ++i)
    for (const size_t input : inputs[order[i]])
      if (seen.insert(input).second) order.push_back(input);
  std::sort(order.begin() + 1, order.end(), std::greater<>());
  return order;
}
