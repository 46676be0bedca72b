// Chapter 0. Grades exercise 0.3.

void grade(Grader& g) {
  const double total = std::exp(2.0) + std::exp(1.0) + 1;
  g.equal(
      "scores 2, 1, 0, and the first is right",
      [] {
        return my_loss({2, 1, 0}, 0);
      },
      std::log(total) - 2, "A probability is at most 1, so its logarithm is at most 0; a loss is at least 0.");
  g.equal(
      "scores 2, 1, 0, and the last is right",
      [] {
        return my_loss({2, 1, 0}, 2);
      },
      std::log(total), "The sum in the denominator runs over all scores, whichever token is right.");
  g.equal(
      "sixteen equal scores", [] { return my_loss(std::vector<double>(16, 3.5), 7); }, std::log(16.0),
      "Each of the 16 tokens has probability 1/16. The loss is a natural logarithm.");
  g.equal(
      "scores 1000 and 999",
      [] {
        return my_loss({1000, 999}, 0);
      },
      std::log1p(std::exp(-1.0)),
      "e^1000 overflows. Divide numerator and denominator of p_i by the same number, such as e^{largest score}.");
  g.equal(
      "scores 0 and -2000, and the second is right",
      [] {
        return my_loss({0, -2000}, 1);
      },
      2000,
      "e^{-2000} is 0 for a double, and so is a probability made of it. Take the logarithm of the fraction first, by "
      "hand: ln(a / b) = ln a - ln b.");
  g.equal(
      "scores -2000 and -1000, and the second is right",
      [] {
        return my_loss({-2000, -1000}, 1);
      },
      0, "The largest score need not be the first, nor positive.");
}
