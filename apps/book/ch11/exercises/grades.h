// Chapter 11. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // the tree

void grade(Grader& g) {
  const float big = 16777216;  // 2^24
  const auto ask = [&](const std::string& question, const std::vector<float>& numbers, float expected,
                       const std::string& hint) {
    g.check(question, hint, [&] {
      const float said = my_tree_sum(numbers);
      orrery::check(said == expected, "the sum", "is ", std::llround(said), ", should be ", std::llround(expected));
      return true;
    });
  };
  ask("one number", {3}, 3, "A node with one leaf is this leaf.");
  ask("two numbers", {3, 4}, 7, "Has every number been added once?");
  ask("four numbers: 2^24, 1, 1, -2^24", {big, 1, 1, -big}, 1,
      "Sums of two neighbours come first, and each is rounded to f32: what becomes of 2^24 + 1?");
  ask("three numbers: 1, 1, 2^24", {1, 1, big}, big + 2,
      "The last number has no neighbour. On which side of it are the others, and are they one sum already?");
  ask("five numbers: 1, 1, 2^24, 1, -2^24", {1, 1, big, 1, -big}, 2,
      "The halves of five leaves are four and one, not two and three.");
  ask("six numbers: 2^24, 1, 1, 1, -2^24, 1", {big, 1, 1, 1, -big, 1}, 3,
      "Leaves 4 and 5 are a node by themselves, which meets the other four last.");
  ask("seven numbers", {1, 1, 1, 1, big, 1, 1}, big + 4, "The right half has three leaves: two, and one.");
  g.check("a thousand numbers have the bits of the tree", "Is the left half of every node full?", [] {
    orrery::Rng rng(11);
    std::vector<float> numbers;
    for (int i = 0; i < 1000; ++i) numbers.push_back(static_cast<float>(rng.uniform() - 0.5));
    std::vector<float> level = numbers;
    while (level.size() > 1) {
      std::vector<float> next;
      for (size_t i = 0; i < level.size(); i += 2)
        next.push_back(i + 1 < level.size() ? level[i] + level[i + 1] : level[i]);
      level = next;
    }
    return my_tree_sum(numbers) == level[0];
  });
}

#elif EXERCISE == 2  // the divisor

// What each rank returns, and what it gave to sum_over_ranks. A first round learns what all give, a second one answers.
struct Round {
  std::vector<Variable> losses, parts;
  std::vector<std::vector<double> > given;
};

Round two_rounds(const std::vector<std::vector<double> >& losses, const std::vector<std::vector<double> >& counts) {
  Round known, round;
  for (int i = 0; i < 2; ++i) {
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
        return known.given.empty() ? std::max(x, 1.0) : sum;
      }));
      round.given.push_back(given);
    }
  }
  return round;
}

void grade(Grader& g) {
  const std::vector<std::vector<double> > unequal{{6, 2, 4}, {8}}, all_count{{1, 1, 1}, {1}},
      padded{{6, 2, 9}, {3, 9, 9}}, some_count{{1, 1, 0}, {1, 0, 0}}, none{{4, 2}, {9, 9}},
      first_counts{{1, 1}, {0, 0}};
  const auto total = [](const auto& losses, const auto& counts) {
    double sum = 0;
    for (const Variable& part : two_rounds(losses, counts).parts) sum += part.item();
    return sum;
  };
  g.equal("two ranks with equally many tokens", {3.0, 1e-12}, "The losses of the ranks are added, not averaged.", [&] {
    return total(std::vector<std::vector<double> >{{6, 2}, {1, 3}}, std::vector<std::vector<double> >{{1, 1}, {1, 1}});
  });
  g.equal("three tokens and one", {5.0, 1e-12},
          "The mean of two means gives the token of the second rank the weight of three.",
          [&] { return total(unequal, all_count); });
  g.equal("padding does not count", {11.0 / 3, 1e-12},
          "Padding counts neither in the sum of the losses nor in the number of tokens.",
          [&] { return total(padded, some_count); });
  g.equal("every token has the same gradient", {Tensor::of<double>({3}, {0.25, 0.25, 0.25}), 1e-12},
          "Each token has weight 1 / (all tokens), on whichever rank it is.", [&] {
            const Round round = two_rounds(unequal, all_count);
            backward(round.parts[0]);
            return round.losses[0].gradient();
          });
  g.equal("padding has no gradient", {Tensor::of<double>({3}, {1.0 / 3, 0, 0}), 1e-12},
          "What must losses be multiplied by, before they are added?", [&] {
            const Round round = two_rounds(padded, some_count);
            backward(round.parts[1]);
            return round.losses[1].gradient();
          });
  g.equal("a rank without tokens", {3.0, 1e-12}, "0 / 0 is not a number: divide by what all ranks have together.",
          [&] { return total(none, first_counts); });
  g.check("all ranks make the same calls", "A rank that has nothing to count must not keep the others waiting.", [&] {
    const Round round = two_rounds(none, first_counts);
    return !round.given[0].empty() && round.given[0].size() == round.given[1].size();
  });
}

#endif
