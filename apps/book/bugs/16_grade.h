// Chapter 3. Grades bug 16.

double slope_at(double x) {
  const Variable in = parameter(full({}, x, f64));
  backward(my_tanh(in));
  return in.gradient().item();
}

void grade(Grader& g) {
  g.equal(
      "its slope at 0", [] { return slope_at(0); }, 1, "The slope is largest where x is 0.");
  g.equal(
      "its slope at log 2", [] { return slope_at(std::log(2.0)); }, 0.64,
      "tanh(log 2) is 0.6. In which of the two, x or y, is the formula of the derivative simple?");
  g.check(
      "its slope at 3 is positive", [] { return slope_at(3) > 0; }, "tanh never falls.");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("tanh", my_tanh, {{3, 4}});
      },
      "How does the error grow with |x|?");
}
