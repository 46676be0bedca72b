// Chapter 3. Grades exercise 3.5.

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
    g.check(
        question + (right ? ": right" : ": wrong"), [&] { return my_gradcheck(f, backward, x) == right; }, hint);
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
      "Each input reaches every output. Which number is it whose slope you compare?");
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
