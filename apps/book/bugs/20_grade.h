// Chapter 4. Grades bug 20.

// The gradient for rows of logits (0, log 2, log 5): the probabilities are 1/8, 2/8 and 5/8.
Tensor gradient_for(const std::vector<i32>& targets) {
  const i64 rows = static_cast<i64>(targets.size());
  const Tensor row = Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)});
  const Variable logits = parameter(broadcast_to(row, {rows, 3}));
  backward(my_cross_entropy(logits, Tensor::of<i32>({rows}, targets)));
  return logits.gradient();
}

void grade(Grader& g) {
  g.equal(
      "dx of two rows that count",
      [] {
        return gradient_for({1, 2});
      },
      Tensor::of<double>({2, 3}, {0.0625, -0.375, 0.3125, 0.0625, 0.125, -0.1875}),
      "Softmax minus 1 at the target, as a mean.");
  g.equal(
      "dx of four rows, of which two count",
      [] {
        return gradient_for({-100, 1, -100, 2});
      },
      Tensor::of<double>({4, 3}, {0, 0, 0, 0.0625, -0.375, 0.3125, 0, 0, 0, 0.0625, 0.125, -0.1875}),
      "The loss of these four rows is the loss of the two rows before. Its gradient, too.");
  g.equal(
      "dx if no row counts",
      [] {
        return gradient_for({-100, -100});
      },
      zeros({2, 3}, f64), "Then the loss is 0 for all logits. And what is 0 times 1 / 0?");
  g.prove(
      "the whole proof",
      [] {
        const auto loss = [](const Variable& x) {
          return my_cross_entropy(x, Tensor::of<i32>({2, 2}, {1, 0, -100, 3}));
        };
        return sample_of("cross_entropy", loss, {{2, 2, 4}});
      },
      "Is the ratio the same everywhere? Of which two counts is it the quotient?");
}
