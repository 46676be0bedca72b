// Chapter 6. Grades exercise 6.2.

void grade(Grader& g) {
  g.equal(
      "position 0", [] { return my_sinusoids(3, 4).rows(0, 1); }, Tensor::of<double>({1, 4}, {0, 1, 0, 1}),
      "The sine of 0 is 0, its cosine 1. Which columns hold sines?");
  g.equal(
      "position 1 with two columns", [] { return my_sinusoids(2, 2).rows(1, 2); },
      Tensor::of<double>({1, 2}, {std::sin(1.0), std::cos(1.0)}), "The sine and the cosine of a pair have one angle.");
  g.equal(
      "position 1 with four columns", [] { return my_sinusoids(3, 4).rows(1, 2); },
      Tensor::of<double>({1, 4}, {std::sin(1.0), std::cos(1.0), std::sin(0.01), std::cos(0.01)}),
      "Columns 0 and 1 share a frequency, and so do columns 2 and 3. What is 10000^(2i / d_model) for i = 1?");
  g.equal(
      "50 positions with 16 columns", [] { return my_sinusoids(50, 16); }, nn::sinusoidal_table(50, 16),
      "Is the angle the position times the frequency of its pair of columns?");
}
