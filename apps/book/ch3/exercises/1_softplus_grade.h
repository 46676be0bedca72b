// Chapter 3. Grades exercise 3.1.

void grade(Grader& g) {
  const Variable x = parameter(Tensor::of<double>({3}, {std::log(3.0), 0, -std::log(3.0)}));
  g.equal(
      "the slope where e^x is 3, 1 and 1/3",
      [&] {
        backward(my_softplus(x), full({3}, 1, f64));
        return x.gradient();
      },
      Tensor::of<double>({3}, {0.75, 0.5, 0.25}),
      "The chain rule: the derivative of ln at 1 + e^x, times the derivative of 1 + e^x.");
  g.equal(
      "the slope at x = -40",
      [] {
        const Variable left = parameter(full({1}, -40, f64));
        backward(my_softplus(left), full({1}, 1, f64));
        return left.gradient().item();
      },
      0, "Far on the left softplus is flat. Your slope has to fall to 0 there.");
  g.equal(
      "the slope at x = 1000",
      [] {
        const Variable right = parameter(full({1}, 1000, f64));
        backward(my_softplus(right), full({1}, 1, f64));
        return right.gradient().item();
      },
      1, "e^1000 is infinite. Divide numerator and denominator by e^x.");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_softplus", my_softplus, {{3, 4}});
      },
      "Where x is very large the slope is 1.");
}
