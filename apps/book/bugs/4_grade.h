// Chapter 5. Grades bug 4.

void grade(Grader& g) {
  Rng rng(3);
  const Variable x = constant(randn({2, 3, 4}, rng, f64)), w = constant(randn({5, 4}, rng, f64));
  const Variable b = constant(randn({5}, rng, f64));
  g.equal(
      "its value", [&] { return my_linear(x, w, b).value(); }, linear(x, w, b).value(),
      "The forward was right: x W^T + b.");
  g.prove(
      "the whole proof, with as many positions as outputs",
      [] {
        return sample_of("linear", my_linear, {{2, 3, 4}, {3, 4}, {3}});
      },
      "Which part failed, and for which of the three inputs? How is this input used in y?");
  g.prove(
      "the whole proof, with fewer positions than outputs",
      [] {
        return sample_of("linear", my_linear, {{2, 3, 4}, {5, 4}, {5}});
      },
      "Which part failed, and for which of the three inputs? How is this input used in y?");
}
