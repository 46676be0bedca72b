// Chapter 8. Grades exercise 8.3.

void grade(Grader& g) {
  const double hidden = -std::numeric_limits<double>::infinity(), ln2 = std::log(2.0);
  const auto ask = [&](const std::string& question, const std::vector<std::pair<double, double>>& stream,
                       double expected, const std::string& hint) {
    g.equal(
        question,
        [&] {
          MyRunningSoftmax mine;
          for (const auto& [score, value] : stream) mine.add(score, value);
          return mine.result();
        },
        expected, hint);
  };
  ask("nothing yet", {}, 0, "What is the sum before the first score?");
  ask("falling scores", {{2 * ln2, 10}, {ln2, 20}, {0, 40}}, 120.0 / 7,
      "The first score stays the largest. What does each later one weigh beside it?");
  ask("rising scores", {{0, 40}, {ln2, 20}, {2 * ln2, 10}}, 120.0 / 7,
      "When a larger score comes, everything you have was computed with the smaller one.");
  ask("scores in the thousands", {{-5000, 3}, {5000, 10}, {5000 + ln2, 40}}, 30,
      "Which number may stand under e so that the result is never above 1?");
  ask("hidden first", {{hidden, 7}, {hidden, 8}, {1, 5}, {1, 9}}, 7,
      "-infinity - (-infinity) is no number. What does a hidden key add?");
  ask("all hidden", {{hidden, 7}, {hidden, 8}}, 0, "Where everything is hidden, all weights are 0.");
  g.check(
      "three numbers, whatever the length",
      [] { return std::is_trivially_copyable_v<MyRunningSoftmax> && sizeof(MyRunningSoftmax) <= 3 * sizeof(double); },
      "What was kept of the scores so far? A stream may be longer than any memory.");
}
