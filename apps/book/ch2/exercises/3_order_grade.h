// Chapter 2. Grades exercise 2.3.

void grade(Grader& g) {
  // What is wrong with an order; "" if nothing is.
  const auto wrong = [](const Graph& inputs, const std::vector<size_t>& order, size_t nodes) -> std::string {
    for (size_t i = 0; i < order.size(); ++i)
      if (order[i] >= inputs.size()) return "has a node that is not there";
    if (std::set<size_t>(order.begin(), order.end()).size() < order.size()) return "has a node twice";
    if (order.size() < nodes) return "lacks a node that y leads back to";
    if (order.size() > nodes) return "has a node that y does not lead back to";
    for (size_t later = 0; later < order.size(); ++later)
      for (const size_t input : inputs[order[later]])
        if (std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(later), input) !=
            order.begin() + static_cast<std::ptrdiff_t>(later))
          return "has a node before one that was computed from it";
    return "";
  };
  const auto ask = [&](const std::string& question, const Graph& inputs, size_t y, size_t nodes,
                       const std::string& hint) {
    const auto right = [&] {
      const std::string problem = wrong(inputs, visiting_order(inputs, y), nodes);
      if (!problem.empty()) throw std::runtime_error("the order " + problem);
      return true;
    };
    g.check(question, right, hint);
  };
  ask("a chain: 0 from 1 from 2", {{1}, {2}, {}}, 0, 3, "Follow the inputs to their end.");
  ask("y = u + v, v from u, u from a: y = 0, u = 1, v = 2, a = 3", {{1, 2}, {3}, {1}, {}}, 0, 4,
      "u is an input of y and of v. When is its gradient complete?");
  ask("a product of a number with itself: y = 1, a = 0", {{}, {0, 0}}, 1, 2,
      "A node that is met twice is visited once.");
  ask("a node that y does not lead to", {{2}, {2}, {}}, 0, 2, "Begin at y, and follow inputs only.");
  ask("the same graph of four with other numbers: y = 2, u = 3, v = 1, a = 0", {{}, {3}, {3, 1}, {0}}, 2, 4,
      "The numbers of nodes are names here, and no ages.");
  ask("two chains that meet", {{1, 4}, {2}, {3}, {5}, {3}, {}}, 0, 6,
      "A node can come at last when all that it was computed from has come: turn that round.");
}
