// Chapter 0. Grades exercise 0.5.

// Loss and accuracy side by side.
Tensor both(const Baseline& baseline) { return Tensor::of<double>({2}, {baseline.loss, baseline.accuracy}); }

void grade(Grader& g) {
  const Tensor labels = Tensor::of<i32>({2, 4}, {5, 3, 3, 2, 4, 3, 2, 0}), nothing = full({2, 3}, 0, Dtype::i32);
  g.equal(
      "loss and accuracy of guessing among 16 tokens", [&] { return both(my_uniform(labels, 16, 0)); },
      Tensor::of<double>({2}, {std::log(16.0), 1.0 / 16}),
      "Each token has the same probability. How often is a token right that was drawn without looking?");
  g.equal(
      "guessing where every label is padding", [&] { return both(my_uniform(nothing, 16, 0)); },
      Tensor::of<double>({2}, {0, 0}), "A mean over no labels at all is defined as 0.");
  const double seven = 7;
  const double entropy = -(3 * std::log(3 / seven) + 2 * std::log(2 / seven) + 2 * std::log(1 / seven)) / seven;
  g.equal(
      "loss and accuracy by frequency", [&] { return both(my_by_frequency(labels, 0)); },
      Tensor::of<double>({2}, {entropy, 3 / seven}),
      "By how many labels is each count divided? And how often does each -ln p occur in the mean?");
  g.equal(
      "by frequency, where 3 is padding", [&] { return both(my_by_frequency(labels, 3)); },
      Tensor::of<double>({2}, {-(2 * std::log(0.4) + 3 * std::log(0.2)) / 5, 0.4}),
      "Padding neither has to be said, nor is it a part of what is counted.");
  g.equal(
      "one token only, by frequency", [&] { return both(my_by_frequency(full({3}, 7, Dtype::i32), 0)); },
      Tensor::of<double>({2}, {0, 1}), "A token that is always the right one is never a surprise.");
  g.equal(
      "by frequency where every label is padding", [&] { return both(my_by_frequency(nothing, 0)); },
      Tensor::of<double>({2}, {0, 0}), "A mean over no labels at all is defined as 0.");
}
