// Chapter 1. Grades exercise 1.5.

void grade(Grader& g) {
  const Tensor left = Tensor::of<double>({2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 0, 2});
  const Tensor right = Tensor::of<double>({2, 3, 2}, {1, 0, 2, 1, 0, 3, 7, 8, 9, 10, 11, 12});
  g.equal(
      "two products at once", [&] { return my_product(left, right); },
      Tensor::of<double>({2, 2, 2}, {5, 11, 14, 23, 7, 8, 22, 24}),
      "Row i of the left matrix meets column j of the right one, and both belong to the same b.");
  g.equal(
      "one right matrix for both",
      [&] {
        return my_product(left, right.rows(0, 1).reshape({3, 2}));
      },
      Tensor::of<double>({2, 2, 2}, {5, 11, 14, 23, 1, 0, 0, 6}),
      "A right matrix of two axes has no b: right.rank() says which of the two kinds you were given.");
  Rng rng(1);
  const Tensor a = randn({3, 2, 5}, rng, f64), b = randn({3, 5, 4}, rng, f64);
  g.equal(
      "random matrices against the library's product", [&] { return my_product(a, b); }, matmul(a, b),
      "All sizes differ here. Which of m, k, n and B bounds which loop?");
  g.check(
      "inner sizes that differ are refused",
      [&] {
        try {
          my_product(left, zeros({2, 4, 2}, f64));
        } catch (const Error&) { return true; }
        return false;
      },
      "left's last size and right's last but one are the same k.");
}
