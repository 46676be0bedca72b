// Chapter 4. Grades exercise 4.5.

void grade(Grader& g) {
  g.equal(
      "dx of (0, 2, 2, 8) where only y_0 counts",
      [] {
        const Variable x = parameter(Tensor::of<double>({1, 4}, {0, 2, 2, 8}));
        backward(my_layer_norm(x, 1e-9), Tensor::of<double>({1, 4}, {1, 0, 0, 0}));
        return x.gradient();
      },
      Tensor::of<double>({1, 4}, {3.0 / 18, -2.0 / 18, -2.0 / 18, 1.0 / 18}),
      "x_k reaches y_0 in three ways: directly, through the mean and through the variance. Which is missing?");
  g.equal(
      "the sum of dx in each of three rows",
      [] {
        Rng rng(4);
        const Variable x = parameter(randn({3, 9}, rng, f64));
        backward(my_layer_norm(x, 1e-5), randn({3, 9}, rng, f64));
        return sum(x.gradient(), {-1});
      },
      zeros({3}, f64),
      "Adding the same number to a whole row does not change y. What does this say about the sum of dx?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_layer_norm", [](const Variable& x) { return my_layer_norm(x, 1e-5); }, {{3, 5}});
      },
      "Over which axis do the means run, and is the axis kept?");
}
