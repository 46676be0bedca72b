// Chapter 5. Grades exercise 5.2.

double mean_square(const Tensor& x) { return dot(x, x) / static_cast<double>(x.count()); }

// The mean square of z after ten maps z -> relu(z) W^T of `width` numbers, of 1 before.
double after_ten_maps(i64 width) {
  Rng rng(52);
  Tensor z = randn({64, width}, rng, f64);
  const double bound = relu_bound(width), start = mean_square(z);
  for (int map = 0; map < 10; ++map) {
    const Tensor W = rand_uniform({width, width}, -bound, bound, rng, f64);
    z = matmul(relu(constant(z)).value(), W, Trans::b);
  }
  return mean_square(z) / start;
}

void grade(Grader& g) {
  g.equal(
      "the bound of 64 to 128", [] { return xavier_bound(64, 128); }, std::sqrt(6.0 / 192),
      "Work out the variance of U(-a, a), the mean of w^2 for w between -a and a, and solve for a.");
  g.equal(
      "the variance of drawn weights of 50 to 150, times 100, to 5 %",
      [] {
        Rng rng(5);
        const double bound = xavier_bound(50, 150);
        return mean_square(rand_uniform({150, 50}, -bound, bound, rng, f64)) * 100;
      },
      1, "The bound of a uniform distribution is not its standard deviation.", 0.05);
  g.equal(
      "the bound with relu, of 96 inputs", [] { return relu_bound(96); }, 0.25,
      "What is the mean of relu(z)^2, if z and -z are equally likely, relative to the mean of z^2?");
  g.equal(
      "ten maps with relu keep a mean square of 1, roughly", [] { return after_ten_maps(128); }, 1,
      "What is lost at one map is lost again at each of the others.", 0.5);
}
