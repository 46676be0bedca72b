// Chapter 4. Grades bug 0.

// dx of the row (3, 4, 0, 0), where only y_0 counts.
Tensor gradient() {
  const Variable x = parameter(Tensor::of<double>({1, 4}, {3, 4, 0, 0}));
  backward(my_rms_norm(x), Tensor::of<double>({1, 4}, {1, 0, 0, 0}));
  return x.gradient();
}

void grade(Grader& g) {
  g.equal(
      "y of (3, 4, 0, 0)",
      [] {
        return my_rms_norm(constant(Tensor::of<double>({1, 4}, {3, 4, 0, 0}))).value();
      },
      Tensor::of<double>({1, 4}, {1.2, 1.6, 0, 0}), "The root of the mean square is 2.5.");
  g.gradients(
      "the gradients of rows of one number",
      [] {
        Rng rng(4);
        // + x, since the gradient of y alone is 0 here, which the check takes for a failure.
        return checkable([](const Variable& x) { return my_rms_norm(x) + x; }, {randn({3, 1}, rng, f64)});
      },
      "y is 1 or -1.");
  g.equal(
      "dx_0 of (3, 4, 0, 0) where only y_0 counts", [] { return gradient().at(0); }, 0.256,
      "x_0 reaches y_0 directly, and through the mean square.");
  g.equal(
      "dx_1 of (3, 4, 0, 0) where only y_0 counts", [] { return gradient().at(1); }, -0.192,
      "x_1 reaches y_0 through the mean square alone.");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("rms_norm", my_rms_norm, {{3, 5}});
      },
      "Is the error larger in longer rows?");
}
