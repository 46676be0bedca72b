// Chapter 4. Grades exercise 4.2.

void grade(Grader& g) {
  const Tensor x = Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)});
  const Tensor dy = Tensor::of<double>({1, 3}, {1, 0, 0});
  g.equal(
      "dx where only y_0 counts",
      [&] {
        const Variable in = parameter(x.clone());
        backward(my_softmax(in), dy);
        return in.gradient();
      },
      Tensor::of<double>({1, 3}, {7.0 / 64, -2.0 / 64, -5.0 / 64}),
      "dL/dx_j collects a term from every output of its row, not only from y_j. What is dy_i/dx_j for i = j, and for "
      "i other than j?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_softmax", my_softmax, {{3, 4}});
      },
      "Every row has a sum of its own, over the last axis. Does the sum keep this axis, with size 1?");
}
