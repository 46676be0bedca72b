// Chapter 4. Grades exercise 4.1.

// The gradient of input number `which` for a = [[1, 2], [3, 4]], b = [[1, 1], [0, 2]], dy = [[1, -2], [0, 1]].
Tensor gradient_of(size_t which) {
  const Variable a = parameter(Tensor::of<double>({2, 2}, {1, 2, 3, 4}));
  const Variable b = parameter(Tensor::of<double>({2, 2}, {1, 1, 0, 2}));
  backward(my_matmul(a, b), Tensor::of<double>({2, 2}, {1, -2, 0, 1}));
  return which == 0 ? a.gradient() : b.gradient();
}

void grade(Grader& g) {
  g.equal(
      "da of two square matrices", [] { return gradient_of(0); }, Tensor::of<double>({2, 2}, {-1, -4, 1, 2}),
      "a_ik is used in y_i0, y_i1, ...; each time it is multiplied by an element of which row of b?");
  g.equal(
      "db of two square matrices", [] { return gradient_of(1); }, Tensor::of<double>({2, 2}, {1, 1, 2, 0}),
      "b_kj is used in y_0j, y_1j, ...; each time it is multiplied by an element of which column of a?");
  g.prove(
      "the whole proof, of matrices that are not square",
      [] {
        return sample_of("my_matmul", my_matmul, {{3, 4}, {4, 2}});
      },
      "Write the shapes of dy, a and b beside each other: which products have the shape of a, and of b?");
}
