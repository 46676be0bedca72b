// Chapter 2. Grades exercise 2.5.

void grade(Grader& g) {
  const auto gradient = [](Variable (*f)(const Variable&)) {
    const Variable x = parameter(Tensor::of<double>({3}, {-1, 2, 5}));
    backward(sum(f(x)));
    return x.gradient();
  };
  g.equal(
      "y = x^2 at -1, 2, 5", [&] { return gradient(my_square); }, Tensor::of<double>({3}, {-2, 4, 10}),
      "Nobody has written to this gradient yet. What is in a buffer that is new?");
  const auto used_after = [](const Variable& x) { return my_square(x) + x; };
  g.equal(
      "y = x^2 + x at -1, 2, 5", [&] { return gradient(used_after); }, Tensor::of<double>({3}, {-1, 5, 11}),
      "`add` is newer than the square, so backward comes to it first, and it gives x a 1.");
  const auto used_twice = [](const Variable& x) { return my_square(x) + my_square(x); };
  g.equal(
      "y = x^2 + x^2 at -1, 2, 5", [&] { return gradient(used_twice); }, Tensor::of<double>({3}, {-4, 8, 20}),
      "The first of the two to come writes. What must the second do?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("my_square", my_square, {{3, 4}});
      },
      "Both cases of is_new must leave the whole sum in the buffer.");
}
