// Chapter 3. Grades exercise 3.2.

void grade(Grader& g) {
  const auto power = [](int n) {
    return [n](double x) {
      double result = 1;
      for (int i = 0; i < n; ++i) result *= x;
      return result;
    };
  };
  g.equal(
      "2 x at x = 3, h = 1/2", [] { return my_slope([](double x) { return 2 * x; }, 3, 0.5); }, 2,
      "For a straight line every pair of points gives the slope. What must the weights of the two pairs add up to?");
  g.equal(
      "the weight of f(x + h) for h = 1",
      [] { return my_slope([](double x) { return std::fabs(x - 1) < 0.5 ? 1.0 : 0.0; }, 0, 1); }, 2.0 / 3,
      "f is 1 at x + h alone. Which pair should count more: the near one or the far one?");
  g.equal(
      "x^2 at x = 3, h = 1/2", [&] { return my_slope(power(2), 3, 0.5); }, 6, "Points on both sides of x cancel h^2.");
  g.equal(
      "x^3 at x = 1, h = 1/2", [&] { return my_slope(power(3), 1, 0.5); }, 3,
      "Each pair of points has an error of its own, which grows with h^2. How do two pairs cancel theirs?");
  g.equal(
      "x^4 at x = 1, h = 1/2", [&] { return my_slope(power(4), 1, 0.5); }, 4, "Look at the terms with h^4.");
  g.equal(
      "x^5 at x = 1, h = 1/2: 5 - 4 h^4", [&] { return my_slope(power(5), 1, 0.5); }, 4.75,
      "Two pairs of points, at h and at 2h, leave an error of h^4 / 30 times the fifth derivative.");
  g.equal(
      "e^x at x = 0, h = 1e-3", [] { return my_slope([](double x) { return std::exp(x); }, 0, 1e-3); }, 1,
      "The step is h: a fixed one does not do.");
}
