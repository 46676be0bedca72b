// Chapter 4. Grades bug 17.

// The sum of each row of dx, where dy is 1.
Tensor row_sums(const Tensor& x) {
  const Variable in = parameter(x.clone());
  const Variable y = my_max(in, {-1}, false);
  backward(y, full(y.shape(), 1.0, f64));
  return sum(in.gradient(), {-1});
}

void grade(Grader& g) {
  g.equal(
      "the sum of each row of dx, all numbers different",
      [] {
        return row_sums(Tensor::of<double>({2, 3}, {1, 2, 3, 6, 5, 4}));
      },
      full({2}, 1.0, f64), "Add h to a whole row: by how much does its largest number grow?");
  g.equal(
      "the sum of each row of dx, some numbers equal",
      [] {
        return row_sums(Tensor::of<double>({2, 3}, {1, 3, 3, 5, 5, 5}));
      },
      full({2}, 1.0, f64),
      "Add h to a whole row: by how much does its largest number grow, and does it matter how many are the largest?");
  g.prove(
      "the whole proof",
      [] {
        return sample_of("max", [](const Variable& x) { return my_max(x, {-1}, true); }, {{3, 4}});
      },
      "It passed before: where only one number is the largest, nothing changes.");
}
