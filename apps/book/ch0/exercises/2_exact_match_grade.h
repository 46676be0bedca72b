// Chapter 0. Grades exercise 0.2.

void grade(Grader& g) {
  const Tensor wanted = Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 0, 8, 8, 8, 2, 4, 2, 0, 0});
  g.equal(
      "all four answers are right", [&] { return my_exact_match(wanted, wanted); }, 1,
      "Count the rows in which every token that matters is the wanted one, then divide by the number of rows.");
  g.equal(
      "one token of one answer is wrong",
      [&] {
        return my_exact_match(Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 0, 8, 9, 8, 2, 4, 2, 0, 0}), wanted);
      },
      0.75, "One wrong token makes the whole answer wrong, however many others are right.");
  g.equal(
      "two answers go on after the end mark",
      [&] {
        return my_exact_match(Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 9, 8, 8, 8, 2, 4, 2, 2, 7}), wanted);
      },
      1, "Where does an answer end? Compare no further than that.");
  g.equal(
      "one answer does not end in time",
      [&] {
        return my_exact_match(Tensor::of<i32>({4, 4}, {5, 6, 7, 2, 5, 6, 2, 0, 8, 8, 8, 8, 4, 2, 0, 0}), wanted);
      },
      0.75, "The end mark is a token that the model has to say, like the others.");
  g.equal(
      "one answer ends too early",
      [&] {
        return my_exact_match(Tensor::of<i32>({4, 4}, {5, 2, 7, 2, 5, 6, 2, 0, 8, 8, 8, 2, 4, 2, 0, 0}), wanted);
      },
      0.75, "The wanted row says where an answer ends. An end mark that comes before is a wrong token.");
  g.equal(
      "no answers at all",
      [] {
        return my_exact_match(zeros({0, 4}, Dtype::i32), zeros({0, 4}, Dtype::i32));
      },
      0, "0 / 0 is not a number.");
}
