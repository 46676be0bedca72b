// Chapter 2. Grades bug 8.

void grade(Grader& g) {
  g.equal(
      "its gradient at 0",
      [] {
        const Variable x = parameter(zeros({1}, f64));
        backward(my_exp(x));
        return x.gradient().item();
      },
      1, "The derivative of e^x is e^x.");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("exp", my_exp, {{3, 4}});
      },
      "Which part failed? Read what it does in autograd/check/proof.h. What sees that a kept tensor was written to?");
}
