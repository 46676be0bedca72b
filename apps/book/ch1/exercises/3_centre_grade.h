// Chapter 1. Grades exercise 1.3.

void grade(Grader& g) {
  const Tensor x = Tensor::of<double>({2, 3}, {1, 2, 6, 5, 4, 12});
  const Tensor square = Tensor::of<double>({2, 2}, {1, 3, 10, 50});
  g.equal(
      "columns of a [2, 3]", [&] { return my_centred_columns(x); }, Tensor::of<double>({2, 3}, {-2, -1, -3, 2, 1, 3}),
      "The mean of a column runs down axis 0. Three columns have three means: what is the shape of all of them?");
  g.equal(
      "rows of a [2, 3]", [&] { return my_centred_rows(x); }, Tensor::of<double>({2, 3}, {-2, -1, 3, -2, -3, 5}),
      "Two rows have two means. Written below [2, 3], flush right, what must their shape be to fit?");
  g.equal(
      "columns of a [2, 2]", [&] { return my_centred_columns(square); },
      Tensor::of<double>({2, 2}, {-4.5, -23.5, 4.5, 23.5}),
      "Over which axis does the mean of a column run? In a square matrix the wrong one raises no error.");
  g.equal(
      "rows of a [2, 2]", [&] { return my_centred_rows(square); }, Tensor::of<double>({2, 2}, {-1, 1, -20, 20}),
      "In a square matrix a wrong shape is no error: [2] fits [2, 2], but as a row. Keep the axis that you reduce.");
}
