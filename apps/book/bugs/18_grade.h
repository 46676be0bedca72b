// Chapter 5. Grades bug 18.

void grade(Grader& g) {
  const Draw draw{.seed = 5, .step = 1};
  Rng rng(18);
  const Tensor x = randn({4, 5}, rng, f64);
  g.equal(
      "its value", [&] { return my_dropout(constant(x), 0.4, draw).value(); }, dropout(constant(x), 0.4, draw).value(),
      "The forward was right.");
  g.equal(
      "how many numbers reach y and get no gradient, or do not and get one",
      [&] {
        const Variable in = parameter(x.clone());
        const Variable y = my_dropout(in, 0.4, draw);
        backward(y, full({4, 5}, 1.0, f64));
        double count = 0;
        for (i64 i = 0; i < x.count(); ++i) count += (y.value().at(i) == 0) != (in.gradient().at(i) == 0);
        return count;
      },
      0, "A number that forward set to 0 has no influence. Where is it decided which numbers these are?");
  g.prove(
      "the whole proof",
      [draw] {
        return sample_of("dropout", [draw](const Variable& in) { return my_dropout(in, 0.3, draw); }, {{3, 4}});
      },
      "Compare where the analytic gradient is 0 with where the numeric one is.");
}
