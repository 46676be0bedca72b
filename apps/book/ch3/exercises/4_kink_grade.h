// Chapter 3. Grades exercise 3.4.

void grade(Grader& g) {
  const auto ask = [&](const std::string& question, const Function& f, double x, bool kink, const std::string& hint) {
    g.check(
        question + (kink ? ": a kink" : ": none"), [&] { return has_kink(f, x) == kink; }, hint);
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
