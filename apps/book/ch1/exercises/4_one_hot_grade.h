// Chapter 1. Grades exercise 1.4.

void grade(Grader& g) {
  const Tensor ids = Tensor::of<i32>({3}, {2, 0, 3});
  const Tensor table = Tensor::of<double>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  g.equal(
      "one-hot rows of the ids 2, 0, 3 among 4 words", [&] { return my_one_hot(ids, 4); },
      Tensor::of<double>({3, 4}, {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1}),
      "Row i has its 1 in the column that id i names. As numbers in memory: where does row i begin?");
  g.equal(
      "ids of shape [2, 2]",
      [&] {
        return my_one_hot(Tensor::of<i32>({2, 2}, {1, 0, 0, 1}), 2);
      },
      Tensor::of<double>({2, 2, 2}, {0, 1, 1, 0, 1, 0, 0, 1}),
      "All axes of the ids stay, and one is appended. In memory the ids are one row of numbers, whatever their shape.");
  g.equal(
      "the rows 2, 0, 3 of a table", [&] { return my_lookup(ids, table); },
      Tensor::of<double>({3, 2}, {5, 6, 1, 2, 7, 8}),
      "A row times a matrix is a sum of the matrix's rows, each times a number of the row. Which numbers are not 0?");
  g.equal(
      "ids of shape [1, 2]",
      [&] {
        return my_lookup(Tensor::of<i32>({1, 2}, {3, 3}), table);
      },
      Tensor::of<double>({1, 2, 2}, {7, 8, 7, 8}),
      "matmul takes [..., m, k] and a shared [k, n]: leading axes of the one-hot tensor may stay.");
}
