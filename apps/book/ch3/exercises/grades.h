// Chapter 3. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // the derivative of softplus

void grade(Grader& g) {
  const auto slope = [](double at) {
    const Variable x = parameter(full({1}, at, f64));
    backward(my_softplus(x), full({1}, 1, f64));
    return x.gradient().item();
  };
  g.equal("the slope at x = -40", 0,
          "Far on the left softplus is flat. Which factor of the chain rule falls to 0 there?",
          [&] { return slope(-40); });
  g.equal("the slope at x = 40", 1,
          "Far on the right softplus is nearly x. Which factor of the chain rule keeps the slope from growing?",
          [&] { return slope(40); });
  const Variable x = parameter(Tensor::of<double>({3}, {std::log(3.0), 0, -std::log(3.0)}));
  g.equal("the slope where e^x is 3, 1 and 1/3", Tensor::of<double>({3}, {0.75, 0.5, 0.25}),
          "The chain rule: the derivative of ln at 1 + e^x, times the derivative of 1 + e^x.", [&] {
            backward(my_softplus(x), full({3}, 1, f64));
            return x.gradient();
          });
  g.equal("the slope at x = 1000", 1, "e^1000 is infinite. Divide numerator and denominator by e^x.",
          [&] { return slope(1000); });
  g.prove("the whole proof", "Where x is very large the slope is 1.", sample_of("my_softplus", my_softplus, {{3, 4}}));
}

#elif EXERCISE == 2  // a numeric derivative of your own

void grade(Grader& g) {
  const auto power = [](int n) {
    return [n](double x) {
      double result = 1;
      for (int i = 0; i < n; ++i) result *= x;
      return result;
    };
  };
  // How much f counts at x + at, for h = 1.
  const auto weight = [](double at) {
    return std::fabs(my_slope([at](double x) { return std::fabs(x - at) < 0.5 ? 1.0 : 0.0; }, 0, 1));
  };
  g.check("f(x + h) counts more than f(x + 2h)", "Which pair should count more: the near one or the far one?",
          [&] { return weight(1) > weight(2); });
  g.equal("2 x at x = 3, h = 1/2", 2,
          "For a straight line every pair of points gives the slope. What must the weights of the two pairs add up to?",
          [] { return my_slope([](double x) { return 2 * x; }, 3, 0.5); });
  g.equal("x^2 at x = 3, h = 1/2", 6, "Points on both sides of x cancel h^2.",
          [&] { return my_slope(power(2), 3, 0.5); });
  g.equal("x^3 at x = 1, h = 1/2", 3,
          "Each pair of points has an error of its own, which grows with h^2. How do two pairs cancel theirs?",
          [&] { return my_slope(power(3), 1, 0.5); });
  g.equal("x^4 at x = 1, h = 1/2", 4, "Look at the terms with h^4.", [&] { return my_slope(power(4), 1, 0.5); });
  g.equal("x^5 at x = 1, h = 1/2: 5 - 4 h^4", 4.75,
          "Two pairs of points, at h and at 2h, leave an error of h^4 / 30 times the fifth derivative.",
          [&] { return my_slope(power(5), 1, 0.5); });
  g.equal("e^x at x = 0, h = 1e-3", 1, "The step is h: a fixed one does not do.",
          [] { return my_slope([](double x) { return std::exp(x); }, 0, 1e-3); });
}

#elif EXERCISE == 3  // a gate with two inputs

void grade(Grader& g) {
  // a = 8 and s(b) = 3/4: y = 6.
  Variable a = parameter(Tensor::of<double>({1}, {8})), b = parameter(Tensor::of<double>({1}, {std::log(3.0)}));
  const auto gradient = [&](const Variable& of) {
    a.clear_gradient();
    b.clear_gradient();
    backward(my_gate(a, b), full({1}, 1, f64));
    return of.gradient();
  };
  g.equal("da where a = 8 and s = 3/4", Tensor::of<double>({1}, {0.75}), "By how much does a s grow when a grows by 1?",
          [&] { return gradient(a); });
  g.equal("db where a = 0", zeros({1}, f64), "Where a is 0, y is 0, however open the gate is.", [&] {
    const Variable nothing = parameter(zeros({1}, f64));
    b.clear_gradient();
    backward(my_gate(nothing, b), full({1}, 1, f64));
    return b.gradient();
  });
  g.equal("db where a = 8 and s = 3/4", Tensor::of<double>({1}, {1.5}),
          "The chain rule in b: dy/ds times ds/db. What is the slope of s?", [&] { return gradient(b); });
  g.prove("the whole proof", "Which of a, s and y stands in da, and which in db?",
          sample_of("my_gate", my_gate, {{2, 3}, {2, 3}}));
  g.prove("the whole proof, b broadcast", "Give the engine a gradient of the shape of y: it sums.",
          sample_of("my_gate", my_gate, {{2, 3}, {3}}));
}

#elif EXERCISE == 4  // finding a kink

void grade(Grader& g) {
  const auto ask = [&](const std::string& question, const Function& f, double x, bool kink, const std::string& hint) {
    g.check(question + (kink ? ": a kink" : ": none"), hint, [&] { return has_kink(f, x) == kink; });
  };
  const std::string sides = "Compare the slope on the right of x with the slope on its left.";
  ask(
      "|x| at 0", [](double x) { return std::fabs(x); }, 0, true, sides);
  ask(
      "max(0, x) at 0", [](double x) { return std::max(0.0, x); }, 0, true, sides);
  ask(
      "max(0, x) at 0.1", [](double x) { return std::max(0.0, x); }, 0.1, false, "There is a kink, but not at x.");
  ask(
      "sin x at 1", [](double x) { return std::sin(x); }, 1, false,
      "Two slopes of a curved function always differ a little. What becomes of the difference as the step shrinks?");
  ask(
      "1000 x^2 at 0", [](double x) { return 1000 * x * x; }, 0, false,
      "Strongly curved, but smooth: what becomes of the difference of the slopes as the step shrinks?");
  ask(
      "0.001 |x - 2| at 2", [](double x) { return 0.001 * std::fabs(x - 2); }, 2, true,
      "A small kink is one too: how large is its jump with a step a tenth as long?");
  ask(
      "x + 3 |x - 1| at 1", [](double x) { return x + 3 * std::fabs(x - 1); }, 1, true, sides);
  ask(
      "1 / (1 + x^2) at 0.5", [](double x) { return 1 / (1 + x * x); }, 0.5, false, "Smooth everywhere.");
}

#elif EXERCISE == 5  // a gradient checker of your own

// x - mean(x).
Numbers less_mean(const Numbers& x) {
  double mean = 0;
  for (const double number : x) mean += number / static_cast<double>(x.size());
  Numbers y = x;
  for (double& number : y) number -= mean;
  return y;
}

void grade(Grader& g) {
  const Numbers x{0.5, -1.25, 2};
  const auto ask = [&](const std::string& question, const Function& f, const Backward& backward, bool right,
                       const std::string& hint) {
    g.check(question + (right ? ": right" : ": wrong"), hint, [&] { return my_gradcheck(f, backward, x) == right; });
  };
  const Function cube = [](const Numbers& in) {
    Numbers y = in;
    for (double& number : y) number = number * number * number;
    return y;
  };
  const auto cube_backward = [](double factor) {
    return [factor](const Numbers& in, const Numbers& dy) {
      Numbers dx = dy;
      for (size_t i = 0; i < in.size(); ++i) dx[i] *= 3 * in[i] * in[i] * factor;
      return dx;
    };
  };
  ask("x^3, the right backward", cube, cube_backward(1), true, "Is the numeric slope as near as the tolerance asks?");
  ask("x^3 with half the slope", cube, cube_backward(0.5), false, "Compare backward's dx with numeric slopes.");
  ask("x^3 with a slope that is 1.0001 times too large", cube, cube_backward(1.0001), false,
      "How small is the error of your numeric slope, and how small can the tolerance then be?");
  const Backward no_numbers = [](const Numbers& in, const Numbers&) {
    return Numbers(in.size(), std::numeric_limits<double>::quiet_NaN());
  };
  ask("x^3, a backward of NaN", cube, no_numbers, false,
      "No comparison with NaN is true: ask whether the difference is small, not whether it is large.");
  const Backward nothing = [](const Numbers& in, const Numbers&) { return Numbers(in.size(), 0.0); };
  const Backward less_mean_backward = [](const Numbers&, const Numbers& dy) { return less_mean(dy); };
  ask("x - mean(x), the right backward", less_mean, less_mean_backward, true,
      "Each input reaches every output. How many inputs move in one of your steps?");
  ask("x - mean(x), a backward that sends nothing", less_mean, nothing, false,
      "The sum of these outputs is 0 whatever x is. Which other number of theirs can you differentiate?");
  const Function products = [](const Numbers& in) { return Numbers{in[0] * in[1], in[1] * in[2], in[0] + in[2]}; };
  const auto products_backward = [](bool whole) {
    return [whole](const Numbers& in, const Numbers& dy) {
      return Numbers{dy[0] * in[1] + dy[2], dy[0] * in[0] + dy[1] * in[2], (whole ? dy[1] * in[1] : 0.0) + dy[2]};
    };
  };
  ask("(a b, b c, a + c), the right backward", products, products_backward(true), true, "Move one input at a time.");
  ask("(a b, b c, a + c), a term of dc missing", products, products_backward(false), false,
      "Every input has to be moved once.");
}

#endif
