// Chapter 2. Grades exercise 2.1.

void grade(Grader& g) {
  // f(a, b) at (a, b), differentiated in a (which = 0) or in b.
  const auto slope = [](Number (*f)(Number, Number), double a, double b, int which) {
    Tape tape;
    const Number inputs[] = {record(tape, a), record(tape, b)};
    run_backward(f(inputs[0], inputs[1]));
    return inputs[which].gradient();
  };
  const auto product = [](Number a, Number b) { return a * b + a; };
  const auto square = [](Number a, Number) { return a * a; };
  const auto quotient = [](Number a, Number b) { return a / b; };
  const auto mixed = [](Number a, Number b) { return (a + b) / (a * b); };
  g.equal(
      "y = a b + a: dy/da at a = 5, b = 2", [&] { return slope(product, 5, 2, 0); }, 3,
      "By how much does a b grow when a grows by 1 and b stays?");
  g.equal(
      "y = a b + a: dy/db at a = 5, b = 2", [&] { return slope(product, 5, 2, 1); }, 5,
      "By how much does a b grow when b grows by 1 and a stays?");
  g.equal(
      "y = a a: dy/da at a = 3", [&] { return slope(square, 3, 0, 0); }, 6,
      "Both inputs are the same a. Each use has its own slope, and the walk adds both.");
  const std::string of_quotient = "Write a / b as a times 1/b. What is the derivative of 1/b, and its sign?";
  g.equal(
      "y = a / b: dy/da at a = 3, b = 2", [&] { return slope(quotient, 3, 2, 0); }, 0.5, of_quotient);
  g.equal(
      "y = a / b: dy/db at a = 3, b = 2", [&] { return slope(quotient, 3, 2, 1); }, -0.75, of_quotient);
  g.equal(
      "y = (a + b) / (a b): dy/da at a = 2, b = 3", [&] { return slope(mixed, 2, 3, 0); }, -0.25,
      "This y is 1/a + 1/b. One of the two operations has a wrong slope.");
}
