// Chapter 0. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // copy instead of reverse

void grade(Grader& g) {
  const Tensor source = Tensor::of<i32>({2, 3}, {5, 6, 7, 9, 9, 4});
  const Tensor target = Tensor::of<i32>({2, 5}, {1, 5, 6, 7, 2, 1, 9, 9, 4, 2});
  g.equal("the target of copy", target,
          "Each row is the begin mark, the symbols in the order in which the source has them, and the end mark.",
          [&] { return my_target(source); });
  g.equal(
      "what the decoder reads", Tensor::of<i32>({2, 4}, {1, 5, 6, 7, 1, 9, 9, 4}),
      "It starts with the begin mark. Nothing comes after the end mark, so nobody has to read that one. slice(x, 1, "
      "begin, end) cuts along the second axis; a negative end counts from the right.",
      [&] { return my_decoder_input(target); });
  g.equal("what the decoder should say", Tensor::of<i32>({2, 4}, {5, 6, 7, 2, 9, 9, 4, 2}),
          "Where the decoder reads token t of the target, it should say token t + 1. Nobody says the begin mark.",
          [&] { return my_next_tokens(target); });
}

#elif EXERCISE == 2  // exact match

void grade(Grader& g) {
  const Tensor wanted = Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 0, 8, 8, 8, 2, 4, 2, 0, 0});
  g.equal("all four answers are right", 1,
          "Count the rows in which every token that matters is the wanted one, then divide by the number of rows.",
          [&] { return my_exact_match(wanted, wanted); });
  g.equal("one token of one answer is wrong", 0.75,
          "One wrong token makes the whole answer wrong, however many others are right.", [&] {
            return my_exact_match(Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 0, 8, 9, 8, 2, 4, 2, 0, 0}), wanted);
          });
  g.equal("two answers go on after the end mark", 1, "Where does an answer end? Compare no further than that.", [&] {
    return my_exact_match(Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 9, 8, 8, 8, 2, 4, 2, 2, 7}), wanted);
  });
  g.equal("one answer does not end in time", 0.75,
          "The end mark is a token that the model has to say, like the others.", [&] {
            return my_exact_match(Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 0, 8, 8, 8, 8, 4, 2, 0, 0}), wanted);
          });
  g.equal("one answer ends too early", 0.75,
          "The wanted row says where an answer ends. An end mark that comes before is a wrong token.", [&] {
            return my_exact_match(Tensor::of<i32>({4, 4}, {5, 2, 7, 2, 5, 6, 2, 0, 8, 8, 8, 2, 4, 2, 0, 0}), wanted);
          });
  g.equal("no answers at all", 0, "0 / 0 is not a number.", [] {
    return my_exact_match(zeros({0, 4}, Dtype::i32), zeros({0, 4}, Dtype::i32));
  });
}

#elif EXERCISE == 3  // from scores to a loss

void grade(Grader& g) {
  const double total = std::exp(2.0) + std::exp(1.0) + 1;
  g.equal("scores 2, 1, 0, and the first is right", std::log(total) - 2,
          "A probability is at most 1, so its logarithm is at most 0; a loss is at least 0.", [] {
            return my_loss({2, 1, 0}, 0);
          });
  g.equal("scores 2, 1, 0, and the last is right", std::log(total),
          "The sum in the denominator runs over all scores, whichever token is right.", [] {
            return my_loss({2, 1, 0}, 2);
          });
  g.equal("sixteen equal scores", std::log(16.0),
          "Each of the 16 tokens has probability 1/16. The loss is a natural logarithm.",
          [] { return my_loss(std::vector<double>(16, 3.5), 7); });
  g.equal("scores 1000 and 999", std::log1p(std::exp(-1.0)),
          "e^1000 overflows. Divide numerator and denominator of p_i by the same number, such as e^{largest score}.",
          [] {
            return my_loss({1000, 999}, 0);
          });
  g.equal(
      "scores 0 and -2000, and the second is right", 2000,
      "e^{-2000} is 0 for a double, and so is a probability made of it. Take the logarithm of the fraction first, by "
      "hand: ln(a / b) = ln a - ln b.",
      [] {
        return my_loss({0, -2000}, 1);
      });
  g.equal("scores -2000 and -1000, and the second is right", 0,
          "The largest score need not be the first, nor positive.", [] {
            return my_loss({-2000, -1000}, 1);
          });
}

#elif EXERCISE == 4  // write an answer, token by token

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
      "an empty answer", Tensor::of<i32>({0}, {}),
      "The model says the end mark at once. Which marks are part of the answer, and which only say where it stands?",
      [] { return as_tensor(my_write(one_that_writes({}), 20)); });
  g.equal("an answer of four tokens", Tensor::of<i32>({4}, {7, 3, 9, 3}),
          "How much of what is written so far does the model see?", [] {
            return as_tensor(my_write(one_that_writes({7, 3, 9, 3}), 20));
          });
  g.equal("no more than three tokens", Tensor::of<i32>({3}, {4, 5, 6}),
          "A model that does not end must not keep you forever: stop after `most` tokens.", [] {
            return as_tensor(my_write(one_that_writes({4, 5, 6, 7, 8}), 3));
          });
  g.equal("equal scores", Tensor::of<i32>({1}, {3}), "Of several tokens with the highest score the first one is taken.",
          [] {
            return as_tensor(my_write(
                [](const std::vector<i32>& written) {
                  return written.size() == 1 ? std::vector<double>{0, 0, 0, 8, 8, 8}
                                             : std::vector<double>{0, 0, 8, 0, 0, 8};
                },
                20));
          });
}

#elif EXERCISE == 5  // two models that know nothing

// Loss and accuracy side by side.
Tensor both(const Baseline& baseline) { return Tensor::of<double>({2}, {baseline.loss, baseline.accuracy}); }

void grade(Grader& g) {
  const Tensor labels = Tensor::of<i32>({2, 4}, {5, 3, 3, 2, 4, 3, 2, 0}), nothing = full({2, 3}, 0, Dtype::i32);
  g.equal("loss and accuracy of guessing among 16 tokens", Tensor::of<double>({2}, {std::log(16.0), 1.0 / 16}),
          "Each token has the same probability. How often is a token right that was drawn without looking?",
          [&] { return both(my_uniform(labels, 16, 0)); });
  const double seven = 7;
  const double entropy = -(3 * std::log(3 / seven) + 2 * std::log(2 / seven) + 2 * std::log(1 / seven)) / seven;
  g.equal("loss and accuracy by frequency, without padding", Tensor::of<double>({2}, {entropy, 3 / seven}),
          "How often does each -ln p occur in a mean over the labels?", [&] {
            return both(my_by_frequency(Tensor::of<i32>({7}, {5, 3, 3, 2, 4, 3, 2}), 0));
          });
  const std::string padding = "Padding neither has to be said, nor is it a part of what is counted.";
  g.equal("by frequency, where 0 is padding", Tensor::of<double>({2}, {entropy, 3 / seven}), padding,
          [&] { return both(my_by_frequency(labels, 0)); });
  g.equal("by frequency, where 3 is padding",
          Tensor::of<double>({2}, {-(2 * std::log(0.4) + 3 * std::log(0.2)) / 5, 0.4}), padding,
          [&] { return both(my_by_frequency(labels, 3)); });
  g.equal("one token only, by frequency", Tensor::of<double>({2}, {0, 1}),
          "A token that is always the right one is never a surprise.",
          [&] { return both(my_by_frequency(full({3}, 7, Dtype::i32), 0)); });
  g.equal("guessing where every label is padding", Tensor::of<double>({2}, {0, 0}),
          "A mean over no labels at all is defined as 0.", [&] { return both(my_uniform(nothing, 16, 0)); });
  g.equal("by frequency where every label is padding", Tensor::of<double>({2}, {0, 0}),
          "A mean over no labels at all is defined as 0.", [&] { return both(my_by_frequency(nothing, 0)); });
}

#endif
