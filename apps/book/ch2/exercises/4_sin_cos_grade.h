// Chapter 2. Grades exercise 2.4.

void grade(Grader& g) {
  const double quarter = std::acos(-1.0) / 4;  // sin and cos are both sqrt(1/2) there
  const auto dx = [quarter](double of_sine, double of_cosine) {
    const Variable x = parameter(Tensor::of<double>({1}, {quarter}));
    const auto [s, c] = my_sin_cos(x);
    backward(concat({s, c}, 0), Tensor::of<double>({2}, {of_sine, of_cosine}) * std::sqrt(2.0));
    return x.gradient();
  };
  g.equal(
      "sin x alone counts", [&] { return dx(1, 0); }, Tensor::of<double>({1}, {1}), "What is the slope of the sine?");
  g.equal(
      "sin x + cos x at its highest point", [&] { return dx(1, 1); }, Tensor::of<double>({1}, {0}),
      "Both outputs came from x, and each adds its part. Does the cosine rise or fall there?");
  g.prove(
      "the whole proof, both outputs used",
      [] {
        const auto both = [](const Variable& x) {
          const auto [s, c] = my_sin_cos(x);
          return concat({s, c}, 0);
        };
        return sample_of("my_sin_cos", both, {{3, 4}});
      },
      "dL/dx = dL/ds ds/dx + dL/dc dc/dx.");
  for (const size_t output : {0, 1})
    g.prove(
        std::string("the whole proof, only the ") + (output == 0 ? "sine" : "cosine") + " used",
        [output] {
          return sample_of("my_sin_cos", [output](const Variable& x) { return my_sin_cos(x)[output]; }, {{3, 4}});
        },
        "An output that leads nowhere has no gradient. What is its dy then?");
}
