// Chapter 1. Grades bug 11.

// The gradient of b, where a has this many rows and dy is 1 everywhere.
Tensor gradient_of_b(i64 rows) {
  const Variable a = parameter(zeros({rows, 2}, f64)), b = parameter(zeros({2}, f64));
  backward(my_add(a, b), full({rows, 2}, 1.0, f64));
  return b.gradient();
}

void grade(Grader& g) {
  g.equal(
      "the gradient of b, one row", [] { return gradient_of_b(1); }, full({2}, 1.0, f64), "y_0j grows with b_j.");
  g.equal(
      "the gradient of b, three rows", [] { return gradient_of_b(3); }, full({2}, 3.0, f64),
      "How often is each number of b used?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("add", my_add, {{3, 4}, {4}});
      },
      "Which of the two inputs is wrong, and by how much does the answer depend on the number of rows?");
}
