// Chapter 5. Grades exercise 5.1.

void grade(Grader& g) {
  const auto is = [&](const char* question, i64 step, double expected, const char* hint) {
    g.equal(
        question, [=] { return my_noam(step, 64, 100) / expected; }, 1, hint);
  };
  is("step 1", 1, 1.0 / 8000,
     "During warm-up the rate grows in proportion to the step. Which term is the smaller one then?");
  is("step 50: half of the peak", 50, 1.0 / 160,
     "Between 1 and warmup the rate is a straight line through 0. Is -3 / 2 in C++ the number you mean?");
  is("the peak, at step 100", 100, 1.0 / 80, "At step = warmup both terms are equal.");
  is("step 400: half of the peak again", 400, 1.0 / 160, "After the warm-up the rate falls with the root of the step.");
  g.equal(
      "d_model four times as large halves the rate", [] { return my_noam(7, 256, 100) / my_noam(7, 64, 100); }, 0.5,
      "The factor d_model^(-1/2) belongs to both terms.");
}
