// Chapter 4. Grades exercise 4.6.

// The student's sum relative to that of backward's dx.
double fraction_of_sum(const Tensor& x, double eps) {
  Rng rng(6);
  const Tensor dy = randn(x.shape(), rng, f64);
  const Variable in = parameter(x.clone());
  const Variable y = layer_norm(in, {}, {}, eps);
  backward(y, dy);
  const Tensor centred = x - mean(x, {-1}, true);
  const double r = 1 / std::sqrt(mean(centred * centred).item() + eps);
  return along_x_hat(dy, y.value(), r, eps) / dot(in.gradient(), y.value());
}

void grade(Grader& g) {
  const Tensor x = Tensor::of<double>({5}, {0, 2, -3, 8, 1});
  const Tensor first = Tensor::of<double>({2}, {1, 0}), x_hat = Tensor::of<double>({2}, {-1, 1});
  g.equal(
      "the sum where eps = 0", [&] { return along_x_hat(first, x_hat, 2, 0); }, 0,
      "Stretching a row about its mean does not change y if there is no eps. What does this say of dx along x^?");
  g.equal(
      "a variance of 0.5 and eps = 0.5: your sum relative to the right one",
      [] {
        return fraction_of_sum(Tensor::of<double>({4}, {1, -1, 0, 0}), 0.5);
      },
      1,
      "Multiply the formula of dx by x^_i and add up over i. Two sums in it you know: that of x^ and that of its "
      "squares.");
  g.equal(
      "a row with a small variance: the same fraction", [&] { return fraction_of_sum(x * 0.01, 1e-3); }, 1,
      "The squares of x^ add up to n var r^2. Replace var, since r^2 (var + eps) = 1.");
}
