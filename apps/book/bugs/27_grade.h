// Chapter 5. Grades bug 27.

using Numbers = std::vector<double>;

// Where numbers that begin at 0 are after these steps, at rate 1.
Tensor after_steps(const std::vector<Numbers>& gradients) {
  MyAdam adam;
  Numbers p(gradients[0].size());
  for (const Numbers& g : gradients) adam.step(p, g, 1);
  Tensor result = zeros({static_cast<i64>(p.size())}, f64);
  for (size_t i = 0; i < p.size(); ++i) result.set(static_cast<i64>(i), p[i]);
  return result;
}

// The same by the library.
Tensor after_steps_of_the_library(const std::vector<Numbers>& gradients) {
  const i64 count = static_cast<i64>(gradients[0].size());
  const Variable p = parameter(zeros({count}, f64), "p");
  optim::Adam adam({p});
  for (const Numbers& numbers : gradients) {
    Tensor g = zeros({count}, f64);
    for (i64 i = 0; i < count; ++i) g.set(i, numbers[static_cast<size_t>(i)]);
    backward(p, g);
    adam.step(1);
  }
  return p.value();
}

void grade(Grader& g) {
  const std::vector<Numbers> one{{4}, {1}, {-2}, {0.5}}, three{{1, 4, -2}, {2, 4, 0}, {1, -1, -2}, {0, 3, 1}};
  g.equal(
      "the first step of one number", [] { return after_steps({{4}}); }, Tensor::of<double>({1}, {-1}),
      "In the first step m_hat is g, and v_hat is g^2.", 1e-6);
  g.equal(
      "the first step of three numbers",
      [] {
        return after_steps({{1, 4, -2}});
      },
      Tensor::of<double>({3}, {-1, -1, 1}),
      "Each has its own m and v. Write down the two corrections with which each number moves.", 1e-6);
  g.equal(
      "four steps of one number", [=] { return after_steps(one); }, after_steps_of_the_library(one),
      "The corrections fade from step to step.", 1e-6);
  g.equal(
      "four steps of three numbers", [=] { return after_steps(three); }, after_steps_of_the_library(three),
      "How often may t grow in four steps?", 1e-6);
}
