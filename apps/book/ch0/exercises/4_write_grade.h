// Chapter 0. Grades exercise 0.4.

// A model that writes the tokens of `answer` and the end mark, and that fails if it is asked forever.
NextScores one_that_writes(const std::vector<i32>& answer) {
  return [answer, asked = 0](const std::vector<i32>& written) mutable {
    check(++asked <= 50, "the model", "was asked more than 50 times");
    check(!written.empty() && written[0] == 1, "the model", "was given a text that does not begin with the begin mark");
    std::vector<double> scores(10, -1);
    const size_t place = written.size() - 1;
    scores[place < answer.size() ? static_cast<size_t>(answer[place]) : 2] = 5;
    return scores;
  };
}

Tensor as_tensor(const std::vector<i32>& tokens) { return Tensor::of<i32>({static_cast<i64>(tokens.size())}, tokens); }

void grade(Grader& g) {
  g.equal(
      "an answer of four tokens",
      [] {
        return as_tensor(my_write(one_that_writes({7, 3, 9, 3}), 20));
      },
      Tensor::of<i32>({4}, {7, 3, 9, 3}),
      "What does the model see of what you have written? And are both marks left out of what you return?");
  g.equal(
      "an empty answer", [] { return as_tensor(my_write(one_that_writes({}), 20)); }, Tensor::of<i32>({0}, {}),
      "The first token that the model says may be the end mark already.");
  g.equal(
      "no more than three tokens",
      [] {
        return as_tensor(my_write(one_that_writes({4, 5, 6, 7, 8}), 3));
      },
      Tensor::of<i32>({3}, {4, 5, 6}),
      "A model that does not end must not keep you forever: stop after `most` tokens.");
  g.equal(
      "equal scores",
      [] {
        return as_tensor(my_write(
            [](const std::vector<i32>& written) {
              return written.size() == 1 ? std::vector<double>{0, 0, 0, 8, 8, 8}
                                         : std::vector<double>{0, 0, 8, 0, 0, 8};
            },
            20));
      },
      Tensor::of<i32>({1}, {3}), "Of several tokens with the highest score the first one is taken.");
}
