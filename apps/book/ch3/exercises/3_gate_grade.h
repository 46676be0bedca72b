// Chapter 3. Grades exercise 3.3.

void grade(Grader& g) {
  // a = 8 and s(b) = 3/4: y = 6.
  Variable a = parameter(Tensor::of<double>({1}, {8})), b = parameter(Tensor::of<double>({1}, {std::log(3.0)}));
  const auto gradient = [&](const Variable& of) {
    a.clear_gradient();
    b.clear_gradient();
    backward(my_gate(a, b), full({1}, 1, f64));
    return of.gradient();
  };
  g.equal(
      "da where a = 8 and s = 3/4", [&] { return gradient(a); }, Tensor::of<double>({1}, {0.75}),
      "By how much does a s grow when a grows by 1?");
  g.equal(
      "db where a = 8 and s = 3/4", [&] { return gradient(b); }, Tensor::of<double>({1}, {1.5}),
      "The chain rule in b: dy/ds times ds/db.");
  g.equal(
      "db where a = 0",
      [&] {
        const Variable nothing = parameter(zeros({1}, f64));
        b.clear_gradient();
        backward(my_gate(nothing, b), full({1}, 1, f64));
        return b.gradient();
      },
      zeros({1}, f64), "Where a is 0, y is 0, however open the gate is.");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_gate", my_gate, {{2, 3}, {2, 3}});
      },
      "Which of a, s and y stands in da, and which in db?");
  g.prove(
      "the whole proof, b broadcast",
      [] {
        return sample_of("my_gate", my_gate, {{2, 3}, {3}});
      },
      "Give the engine a gradient of the shape of y: it sums.");
}
