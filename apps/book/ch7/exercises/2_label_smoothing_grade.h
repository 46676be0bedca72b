// Chapter 7. Grades exercise 7.2.

void grade(Grader& g) {
  const Tensor p = Tensor::of<double>({1, 5}, {0.7, 0.1, 0.1, 0.05, 0.05}), label = Tensor::of<i32>({1}, {0});
  const double by_hand = -0.92 * std::log(0.7) - 0.02 * (2 * std::log(0.1) + 2 * std::log(0.05));  // as in the chapter
  g.equal(
      "one row of five classes", [=] { return my_smoothed_loss(log(constant(p)), label, 0.1).item(); }, by_hand,
      "Every class gets eps / K, the label's too. Then the label gets what is left of 1.");
  g.equal(
      "without smoothing", [=] { return my_smoothed_loss(log(constant(p)), label, 0).item(); }, -std::log(0.7),
      "With eps = 0, q is 1 at the label and 0 elsewhere.");
  g.equal(
      "four equal logits",
      [] {
        return my_smoothed_loss(constant(zeros({1, 4}, f64)), Tensor::of<i32>({1}, {2}), 0.3).item();
      },
      std::log(4.0), "Here every log p_k is -log 4, so that only the sum of all q_k matters. What must it be?");
  const Tensor labels = Tensor::of<i32>({3}, {1, 0, 3});
  const auto logits = [] {
    Rng rng(7);
    return randn({3, 4}, rng, f64);
  };
  g.equal(
      "three rows", [=] { return my_smoothed_loss(constant(logits()), labels, 0.1).item(); },
      cross_entropy(constant(logits()), labels, {.label_smoothing = 0.1}).item(), "The mean over the rows.");
  g.gradients(
      "the gradient of the logits",
      [=] {
        return checkable([=](const Variable& x) { return my_smoothed_loss(x, labels, 0.1); },
                         std::vector<Tensor>{logits()});
      },
      "The gradient is (p - q) / n. Is q a constant, and nothing else?");
}
