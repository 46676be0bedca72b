// Chapter 4. Grades exercise 4.4.

// The gradient of factor * loss for rows of logits (0, log 2, log 5).
Tensor gradient_for(const std::vector<i64>& targets, double factor) {
  const i64 rows = static_cast<i64>(targets.size());
  const Tensor row = Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)});
  const Variable logits = parameter(broadcast_to(row, {rows, 3}));
  backward(my_cross_entropy(logits, targets) * factor);
  return logits.gradient();
}

void grade(Grader& g) {
  g.equal(
      "dx of one row", [] { return gradient_for({1}, 1); }, Tensor::of<double>({1, 3}, {0.125, -0.75, 0.625}),
      "Which probabilities does the model give, and which would it give if it were never surprised?");
  g.equal(
      "dx where the loss counts three times", [] { return gradient_for({1}, 3); },
      Tensor::of<double>({1, 3}, {0.375, -2.25, 1.875}), "What does the chain rule do with dy?");
  g.equal(
      "dx of three rows, of which two count",
      [] {
        return gradient_for({1, -1, 2}, 1);
      },
      Tensor::of<double>({3, 3}, {0.0625, -0.375, 0.3125, 0, 0, 0, 0.0625, 0.125, -0.1875}),
      "A row that the loss does not see cannot change it. And by which number was the loss divided?");
  g.equal(
      "dx if no row counts",
      [] {
        return gradient_for({-1, -1}, 1);
      },
      zeros({2, 3}, f64), "The loss is then 0 for all logits. And what is 0 times 1 / 0?");
  g.gradients(
      "numeric gradients of five rows",
      [] {
        Rng rng(4);
        return checkable(
            [](const Variable& x) {
              return my_cross_entropy(x, {0, 3, -1, 2, 1});
            },
            {randn({5, 4}, rng, f64)});
      },
      "Every row that counts has its own target.");
}
