// Chapter 7. Grades exercise 7.1.

void grade(Grader& g) {
  constexpr i32 bos = 1, eos = 2, pad = 0, ignore = -1;
  const Tensor sentences = Tensor::of<i32>({2, 3}, {7, 8, 9, 5, 6, pad});
  const auto shifted = [=] { return my_shift(sentences, bos, eos, pad, ignore); };
  g.equal(
      "input of a full row", [=] { return shifted().input.rows(0, 1); }, Tensor::of<i32>({1, 4}, {1, 7, 8, 9}),
      "The decoder reads bos first, and never eos: after eos there is nothing to say.");
  g.equal(
      "labels of a full row", [=] { return shifted().labels.rows(0, 1); }, Tensor::of<i32>({1, 4}, {7, 8, 9, 2}),
      "After bos, the model should say the first word; after the last word, eos.");
  g.equal(
      "input of a shorter row", [=] { return shifted().input.rows(1, 2); }, Tensor::of<i32>({1, 4}, {1, 5, 6, 0}),
      "What is behind a sentence stays padding.");
  g.equal(
      "labels of a shorter row", [=] { return shifted().labels.rows(1, 2); }, Tensor::of<i32>({1, 4}, {5, 6, 2, -1}),
      "eos stands right after the last word of its row; what is behind it does not count.");
  g.equal(
      "labels of both rows that count in the loss",
      [=] {
        double counting = 0;
        for (i64 b = 0; b < 2; ++b)
          for (i64 t = 0; t < 4; ++t) counting += shifted().labels(b, t) != ignore;
        return counting;
      },
      7, "Three words and eos, two words and eos. All other labels are `ignore`.");
}
