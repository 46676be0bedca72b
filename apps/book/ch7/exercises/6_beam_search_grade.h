// Chapter 7. Grades exercise 7.6.

constexpr i32 eos = 0;

// Probabilities of the tokens 0 (eos), 1, 2 after each beginning; 1/3 each where nothing else is said.
using Table = std::map<std::vector<i32>, std::vector<double>>;

NextToken model_of(const Table& table) {
  return [table](const std::vector<i32>& tokens) {
    const auto found = table.find(tokens);
    std::vector<double> scores = found == table.end() ? std::vector<double>(3, 1.0 / 3) : found->second;
    for (double& score : scores) score = std::log(score);
    return scores;
  };
}

Tensor searched(const Table& table, i64 width, i64 max_len) {
  const std::vector<i32> tokens = my_beam_search(model_of(table), width, eos, max_len);
  return Tensor::of<i32>({static_cast<i64>(tokens.size())}, tokens);
}

void grade(Grader& g) {
  // Greedy: 1, 2, eos with 0.5 * 0.4 = 0.2; likeliest: 2, 1, eos with 0.4 * 0.9 = 0.36.
  const Table misled{{{}, {0.1, 0.5, 0.4}},
                     {{1}, {0.3, 0.3, 0.4}},
                     {{2}, {0.05, 0.9, 0.05}},
                     {{1, 2}, {0.98, 0.01, 0.01}},
                     {{2, 1}, {0.98, 0.01, 0.01}}};
  g.equal(
      "a beam of one is greedy decoding", [=] { return searched(misled, 1, 5); }, Tensor::of<i32>({3}, {1, 2, 0}),
      "With width 1, one hypothesis is kept at each length: the likeliest by the sum over its tokens.");
  g.equal(
      "a beam of two finds a likelier sentence", [=] { return searched(misled, 2, 5); },
      Tensor::of<i32>({3}, {2, 1, 0}),
      "Both beginnings stay after the first token. Are extensions of both compared with each other?");
  // 1, eos with 0.8 * 0.5 = 0.4; 2, eos with 0.15 * 0.9 = 0.135.
  const Table sure{{{}, {0.05, 0.8, 0.15}}, {{1}, {0.5, 0.25, 0.25}}, {{2}, {0.9, 0.05, 0.05}}};
  g.equal(
      "a sure end does not make up for an unlikely beginning", [=] { return searched(sure, 2, 2); },
      Tensor::of<i32>({2}, {1, 0}), "Hypotheses are compared by the sum over all of their tokens.");
  // 1, eos with 0.5 * 0.5 = 0.25 ends first; 2, 1, eos with 0.48 * 0.9 * 0.9 = 0.39 is likelier.
  const Table late{
      {{}, {0.02, 0.5, 0.48}}, {{1}, {0.5, 0.25, 0.25}}, {{2}, {0.05, 0.9, 0.05}}, {{2, 1}, {0.9, 0.05, 0.05}}};
  g.equal(
      "what ends first need not win", [=] { return searched(late, 2, 5); }, Tensor::of<i32>({3}, {2, 1, 0}),
      "A finished hypothesis waits, while others of the beam may still become likelier sentences.");
  // eos at once with 0.6: what goes on can only become less likely.
  const Table early{{{}, {0.6, 0.3, 0.1}}};
  g.equal(
      "what ended stays in the race", [=] { return searched(early, 2, 5); }, Tensor::of<i32>({1}, {0}),
      "A finished hypothesis is never extended, and is compared with all others at the end.");
  // 1, 1 with 0.98 * 0.98 is far likelier than eos at once, with 0.01.
  const Table endless{{{}, {0.01, 0.98, 0.01}}, {{1}, {0.01, 0.98, 0.01}}};
  g.equal(
      "nothing is longer than max_len", [=] { return searched(endless, 3, 2); }, Tensor::of<i32>({2}, {1, 1}),
      "A hypothesis of max_len tokens is finished without eos, and is compared with the others.");
}
