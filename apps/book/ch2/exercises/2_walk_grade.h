// Chapter 2. Grades exercise 2.2.

void grade(Grader& g) {
  Tape tape;
  const Number a = record(tape, 2), b = record(tape, 3), c = record(tape, 4), y = a * b + c;
  const auto gradient = [](Number of, Number in) {
    run_backward(of);
    return in.gradient();
  };
  g.equal(
      "y = a b + c: dy/da at a = 2, b = 3, c = 4", [&] { return gradient(y, a); }, 3,
      "A line passes on its gradient times the slope. Has it got its whole gradient when it does?");
  g.equal(
      "y = a b + c: dy/dc", [&] { return gradient(y, c); }, 1, "The walk begins at y, with dy/dy = 1.");
  Tape twice;
  const Number t = record(twice, 3), uses = t * t + t;
  g.equal(
      "y = t t + t: dy/dt at t = 3", [&] { return gradient(uses, t); }, 7,
      "t is used three times. What becomes of the part of the first use when the second comes?");
  Tape two;
  const Number x = record(two, 1), u = x + x, v = u + u + u, sum = u + v;
  g.equal(
      "y = u + v, u = 2 x, v = 3 u: dy/dx", [&] { return gradient(sum, x); }, 8,
      "u may pass its gradient on only after v has added its part.");
  g.equal(
      "the same tape again: du/dx", [&] { return gradient(u, x); }, 2,
      "What is in the gradients when a second walk begins?");
  g.equal(
      "du/dv, where u was not computed from v", [&] { return gradient(u, v); }, 0, "Lines after y have no part in it.");
}
