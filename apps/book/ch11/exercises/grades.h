// Chapter 11. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // the tree

void grade(Grader& g) {
  const float big = 16777216;  // 2^24: from here on, floats are 2 apart
  const auto ask = [&](const std::string& question, const std::vector<float>& numbers, double expected,
                       const std::string& hint) {
    g.equal(question, {expected, 0}, hint, [&] { return static_cast<double>(my_tree_sum(numbers)); });
  };
  ask("four: 2^24, 4, 1, 1", {big, 4, 1, 1}, big + 6, "On the first level neighbours meet: g0 and g1, g2 and g3.");
  ask("four: 2^24, 1, 1, -2^24", {big, 1, 1, -big}, 1,
      "Each sum is rounded to f32 before it meets another one: what becomes of 2^24 + 1?");
  ask("five: 2^24, 4, 1, 1, 2", {big, 4, 1, 1, 2}, big + 8,
      "What has no neighbour must not get lost: does the next level have it?");
  ask("five: 1, 1, 1, 2^24, 2", {1, 1, 1, big, 2}, big + 4, "Are there only two of five leaves in your left half?");
  ask("five: 2^24, 1, 1, 1, -2^24", {big, 1, 1, 1, -big}, 2,
      "May a left half have three leaves? No node has three, unless it is the last of its level.");
  ask("five: 4, 1, 1, 2^24, -2^24", {4, 1, 1, big, -big}, 4,
      "A sum of two is complete: may a third one join it on the same level?");
  ask("seven: 2, 2, 1, 1, 2, 1, 2^24", {2, 2, 1, 1, 2, 1, big}, big + 10,
      "Seven leaves leave three nodes, of four, two and one: which two of them are halves of a node?");
  g.check("a thousand", "Which node of six, nine or eleven leaves is none of the tree?", [] {
    orrery::Rng rng(11);
    std::vector<float> numbers;
    for (int i = 0; i < 1000; ++i) numbers.push_back(static_cast<float>(rng.uniform() - 0.5));
    const std::function<float(size_t, size_t)> node = [&](size_t begin, size_t width) -> float {
      const size_t middle = begin + width / 2;
      if (width == 1) return numbers[begin];
      return node(begin, width / 2) + (middle < numbers.size() ? node(middle, width / 2) : 0);
    };
    return my_tree_sum(numbers) == node(0, 1024);
  });
  ask("one: 3", {3}, 3, "A tree of one leaf is this leaf.");
}

#elif EXERCISE == 2  // the divisor

using Rows = std::vector<std::vector<double> >;  // of each rank

// What each rank returns, and what it gave to sum_over_ranks.
struct Round {
  std::vector<Variable> losses, parts;
  Rows given;
};

// One rank after another, in rounds: each round knows the sums of what all gave in the round before.
Round last_round(const Rows& losses, const Rows& counts) {
  Round known, round;
  for (int i = 0; i < 4; ++i) {
    known = std::exchange(round, {});
    for (size_t r = 0; r < losses.size(); ++r) {
      const i64 n = std::ssize(losses[r]);
      std::vector<double> given;
      round.losses.push_back(parameter(Tensor::of<double>({n}, losses[r])));
      round.parts.push_back(my_part(round.losses[r], Tensor::of<double>({n}, counts[r]), [&](double x) {
        given.push_back(x);
        double sum = 0;
        for (const std::vector<double>& of_rank : known.given)
          if (given.size() <= of_rank.size()) sum += of_rank[given.size() - 1];
        return i == 0 ? std::max(x, 1.0) : sum;
      }));
      round.given.push_back(given);
    }
  }
  return round;
}

void grade(Grader& g) {
  const auto ask = [&](const std::string& question, double expected, const std::string& hint, const Rows& losses,
                       const Rows& counts) {
    g.equal(question, {expected, 1e-12}, hint, [&] {
      double sum = 0;
      for (const Variable& part : last_round(losses, counts).parts) sum += part.item();
      return sum;
    });
  };
  ask("two tokens on each of two ranks", 3, "The losses of the ranks are added: is the sum of two means a mean?",
      {{6, 2}, {1, 3}}, {{1, 1}, {1, 1}});
  ask("three tokens, and one", 5, "In the mean of two means, one token of the second rank weighs as much as three.",
      {{6, 2, 4}, {8}}, {{1, 1, 1}, {1}});
  ask("padding is no token", 11.0 / 3, "By how many is divided: do you count places, or tokens?",
      {{6, 2, 0, 0}, {3, 0}}, {{1, 1, 0, 0}, {1, 0}});
  const Rows padded{{6, 2, 9}, {3, 9, 9}}, counted{{1, 1, 0}, {1, 0, 0}}, none{{4, 2}, {9, 9}}, first{{1, 1}, {0, 0}};
  ask("a loss of padding", 11.0 / 3, "Padding has a loss, too: which losses belong into the sum?", padded, counted);
  ask("a rank without tokens", 3, "0 / 0 is no number: by what does a rank divide that has no token?", none, first);
  g.equal("the gradient of each token, and of padding", {Tensor::of<double>({3}, {1.0 / 3, 1.0 / 3, 0}), 1e-12},
          "Backward goes from what you return to `losses`: is there a way?", [&] {
            const Round round = last_round(padded, counted);
            backward(round.parts[0]);
            return round.losses[0].gradient();
          });
  g.check("all ranks call equally often", "A rank that has no token must not keep the others waiting.", [&] {
    const Round round = last_round(none, first);
    return !round.given[0].empty() && round.given[0].size() == round.given[1].size();
  });
}

#endif
