// Chapter 4. Grades exercise 4.3.

void grade(Grader& g) {
  g.equal(
      "y of (0, log 2, log 5)",
      [] {
        return my_log_softmax(constant(Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)}))).value();
      },
      Tensor::of<double>({1, 3}, {std::log(0.125), std::log(0.25), std::log(0.625)}),
      "The numbers e^y must add up to 1. Which one number, the same for the whole row, is taken from every x?");
  g.equal(
      "y of (1000, -1000) and of (-1000, 1000)",
      [] {
        return my_log_softmax(constant(Tensor::of<double>({2, 2}, {1000, -1000, -1000, 1000}))).value();
      },
      Tensor::of<double>({2, 2}, {0, -2000, -2000, 0}),
      "e^1000 is infinite, and log(0) is -infinity. Which number can be taken from a whole row without changing y?");
  g.equal(
      "dx where only y_0 counts",
      [] {
        const Variable x = parameter(Tensor::of<double>({1, 3}, {0, std::log(2.0), std::log(5.0)}));
        backward(my_log_softmax(x), Tensor::of<double>({1, 3}, {1, 0, 0}));
        return x.gradient();
      },
      Tensor::of<double>({1, 3}, {0.875, -0.25, -0.625}),
      "dy_i/dx_k is [i = k] minus something that does not depend on i. What then is left of the sum over i?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_log_softmax", my_log_softmax, {{3, 4}});
      },
      "Forward and backward must speak of the same function, for every row by itself.");
}
